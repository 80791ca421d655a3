package com.redhat.devtools.lsp4ij.client.features;

import com.intellij.openapi.project.Project;
import com.intellij.openapi.vfs.VirtualFile;
import org.eclipse.lsp4j.InitializeParams;
import org.jetbrains.annotations.NotNull;

public class LSPClientFeatures {
    public @NotNull Project getProject() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public boolean isEnabled(@NotNull VirtualFile file) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public void initializeParams(@NotNull InitializeParams initializeParams) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

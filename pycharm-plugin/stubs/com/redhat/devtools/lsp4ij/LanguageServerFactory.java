package com.redhat.devtools.lsp4ij;

import com.redhat.devtools.lsp4ij.client.LanguageClientImpl;
import com.redhat.devtools.lsp4ij.client.features.LSPClientFeatures;
import com.redhat.devtools.lsp4ij.server.StreamConnectionProvider;
import com.intellij.openapi.project.Project;
import org.jetbrains.annotations.NotNull;

public interface LanguageServerFactory {
    @NotNull StreamConnectionProvider createConnectionProvider(@NotNull Project project);
    default @NotNull LanguageClientImpl createLanguageClient(@NotNull Project project) { throw new UnsupportedOperationException("a signature, not the platform"); }
    default @NotNull LSPClientFeatures createClientFeatures() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

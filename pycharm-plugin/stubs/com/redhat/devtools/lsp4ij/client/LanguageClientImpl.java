package com.redhat.devtools.lsp4ij.client;

import com.intellij.openapi.project.Project;
import org.eclipse.lsp4j.services.LanguageClient;

public class LanguageClientImpl implements LanguageClient {
    public LanguageClientImpl(Project project) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public final Project getProject() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public Object createSettings() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

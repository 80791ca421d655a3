package com.redhat.devtools.lsp4ij.server;

import com.intellij.execution.configurations.GeneralCommandLine;

public class OSProcessStreamConnectionProvider implements StreamConnectionProvider {
    public OSProcessStreamConnectionProvider(GeneralCommandLine commandLine) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

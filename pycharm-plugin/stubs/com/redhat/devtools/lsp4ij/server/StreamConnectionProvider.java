package com.redhat.devtools.lsp4ij.server;

public interface StreamConnectionProvider {
}

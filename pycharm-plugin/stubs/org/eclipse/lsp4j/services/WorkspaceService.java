package org.eclipse.lsp4j.services;

import java.util.concurrent.CompletableFuture;
import org.eclipse.lsp4j.ExecuteCommandParams;

public interface WorkspaceService {
    default CompletableFuture<Object> executeCommand(ExecuteCommandParams params) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

package org.eclipse.lsp4j;

import java.util.List;

public class ExecuteCommandParams {
    public ExecuteCommandParams(String command, List<Object> arguments) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

package org.eclipse.lsp4j;

public class InitializeParams {
    public Object getInitializationOptions() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public void setInitializationOptions(Object initializationOptions) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

package org.eclipse.lsp4j;

public class ConfigurationItem {
    public String getSection() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

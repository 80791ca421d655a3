package com.intellij.execution.configurations;

import java.util.List;
import java.util.Map;

public class GeneralCommandLine {
    public GeneralCommandLine(String... command) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public GeneralCommandLine(List<String> command) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public GeneralCommandLine withWorkDirectory(String path) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public Map<String, String> getEnvironment() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

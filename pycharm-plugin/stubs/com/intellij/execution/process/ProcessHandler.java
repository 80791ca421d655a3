package com.intellij.execution.process;

public abstract class ProcessHandler {
    public void startNotify() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

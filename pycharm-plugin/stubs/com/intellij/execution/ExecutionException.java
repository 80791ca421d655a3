package com.intellij.execution;

public class ExecutionException extends Exception {
    public ExecutionException(String message) { super(message); }
}

package com.intellij.execution.executors;

import com.intellij.execution.Executor;

public class DefaultRunExecutor extends Executor {
    public static Executor getRunExecutorInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

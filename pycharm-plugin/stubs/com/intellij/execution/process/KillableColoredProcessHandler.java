package com.intellij.execution.process;

import com.intellij.execution.ExecutionException;
import com.intellij.execution.configurations.GeneralCommandLine;

public class KillableColoredProcessHandler extends ProcessHandler {
    public KillableColoredProcessHandler(GeneralCommandLine commandLine) throws ExecutionException { throw new UnsupportedOperationException("a signature, not the platform"); }
}

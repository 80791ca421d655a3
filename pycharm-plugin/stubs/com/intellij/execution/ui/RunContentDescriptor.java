package com.intellij.execution.ui;

import com.intellij.execution.process.ProcessHandler;
import javax.swing.JComponent;
import org.jetbrains.annotations.Nullable;

public class RunContentDescriptor {
    public RunContentDescriptor(@Nullable ExecutionConsole console, @Nullable ProcessHandler handler, JComponent component, String displayName) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

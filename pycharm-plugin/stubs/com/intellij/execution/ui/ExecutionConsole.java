package com.intellij.execution.ui;

import com.intellij.openapi.Disposable;
import javax.swing.JComponent;

public interface ExecutionConsole extends Disposable {
    JComponent getComponent();
}

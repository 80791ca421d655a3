package com.intellij.execution.filters;

import com.intellij.execution.ui.ConsoleView;

public abstract class TextConsoleBuilder {
    public abstract ConsoleView getConsole();
}

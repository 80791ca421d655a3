package com.intellij.execution.filters;

import com.intellij.openapi.project.Project;

public abstract class TextConsoleBuilderFactory {
    public static TextConsoleBuilderFactory getInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public abstract TextConsoleBuilder createBuilder(Project project);
}

package com.intellij.execution.ui;

import com.intellij.execution.Executor;
import com.intellij.openapi.project.Project;

public interface RunContentManager {
    static RunContentManager getInstance(Project project) { throw new UnsupportedOperationException("a signature, not the platform"); }
    void showRunContent(Executor executor, RunContentDescriptor descriptor);
}

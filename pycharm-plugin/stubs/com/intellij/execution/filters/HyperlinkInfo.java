package com.intellij.execution.filters;

import com.intellij.openapi.project.Project;
import org.jetbrains.annotations.NotNull;

public interface HyperlinkInfo {
    void navigate(@NotNull Project project);
}

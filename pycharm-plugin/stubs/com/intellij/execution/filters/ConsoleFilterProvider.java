package com.intellij.execution.filters;

import com.intellij.openapi.project.Project;
import org.jetbrains.annotations.NotNull;

public interface ConsoleFilterProvider {
    Filter[] getDefaultFilters(@NotNull Project project);
}

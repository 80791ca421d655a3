package com.intellij.execution.configurations;

import com.intellij.openapi.project.Project;

public interface RunConfiguration {
    String getName();
    Project getProject();
}

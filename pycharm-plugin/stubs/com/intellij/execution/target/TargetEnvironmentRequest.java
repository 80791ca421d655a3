package com.intellij.execution.target;

public interface TargetEnvironmentRequest {
}

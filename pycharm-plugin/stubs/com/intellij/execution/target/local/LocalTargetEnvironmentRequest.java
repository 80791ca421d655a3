package com.intellij.execution.target.local;

import com.intellij.execution.target.TargetEnvironmentRequest;

public class LocalTargetEnvironmentRequest implements TargetEnvironmentRequest {
}

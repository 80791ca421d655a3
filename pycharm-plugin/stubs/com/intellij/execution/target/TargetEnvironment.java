package com.intellij.execution.target;

public abstract class TargetEnvironment {
}

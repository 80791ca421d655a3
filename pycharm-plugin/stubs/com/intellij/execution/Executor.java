package com.intellij.execution;

public abstract class Executor {
}

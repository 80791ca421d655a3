package com.jetbrains.python.run;

import com.intellij.execution.configuration.AbstractRunConfiguration;

public abstract class AbstractPythonRunConfiguration<T extends AbstractPythonRunConfiguration<T>> extends AbstractRunConfiguration
    implements PythonRunParams {
}

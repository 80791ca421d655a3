package com.jetbrains.python.run;

import com.intellij.execution.configuration.RunConfigurationExtensionBase;

public abstract class PythonRunConfigurationExtension extends RunConfigurationExtensionBase<AbstractPythonRunConfiguration<?>> {
}

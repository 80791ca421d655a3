package com.intellij.execution.configuration;

import com.intellij.execution.ExecutionException;
import com.intellij.execution.configurations.GeneralCommandLine;
import com.intellij.execution.configurations.RunConfiguration;
import com.intellij.execution.configurations.RunnerSettings;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

public abstract class RunConfigurationExtensionBase<T extends RunConfiguration> {
    public abstract boolean isApplicableFor(@NotNull T configuration);
    public abstract boolean isEnabledFor(@NotNull T applicableConfiguration, @Nullable RunnerSettings runnerSettings);
    protected abstract void patchCommandLine(
        @NotNull T configuration, @Nullable RunnerSettings runnerSettings, @NotNull GeneralCommandLine cmdLine, @NotNull String runnerId)
        throws ExecutionException;
}

package com.intellij.openapi.options;

import com.intellij.openapi.project.Project;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

public abstract class ShowSettingsUtil {
    public static ShowSettingsUtil getInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public abstract <T extends Configurable> void showSettingsDialog(@Nullable Project project, @NotNull Class<T> toSelect);
}

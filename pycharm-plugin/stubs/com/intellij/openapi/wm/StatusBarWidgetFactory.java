package com.intellij.openapi.wm;

import com.intellij.openapi.project.Project;
import org.jetbrains.annotations.NotNull;

public interface StatusBarWidgetFactory {
    @NotNull String getId();
    @NotNull String getDisplayName();
    default @NotNull StatusBarWidget createWidget(@NotNull Project project) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

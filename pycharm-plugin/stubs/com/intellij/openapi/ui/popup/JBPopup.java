package com.intellij.openapi.ui.popup;

import com.intellij.openapi.project.Project;
import org.jetbrains.annotations.NotNull;

public interface JBPopup {
    void showCenteredInCurrentWindow(@NotNull Project project);
}

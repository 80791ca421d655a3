package com.intellij.openapi.wm;

import com.intellij.openapi.Disposable;
import com.intellij.ui.content.ContentManager;
import org.jetbrains.annotations.NotNull;

public interface ToolWindow {
    @NotNull ContentManager getContentManager();
    @NotNull Disposable getDisposable();
}

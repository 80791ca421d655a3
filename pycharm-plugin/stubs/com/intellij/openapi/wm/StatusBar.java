package com.intellij.openapi.wm;

import org.jetbrains.annotations.NotNull;

public interface StatusBar {
    void updateWidget(@NotNull String id);
}

package com.intellij.openapi.projectRoots;

import org.jetbrains.annotations.Nullable;

public interface Sdk {
    @Nullable String getHomePath();
}

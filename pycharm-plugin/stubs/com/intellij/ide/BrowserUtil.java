package com.intellij.ide;

import java.io.File;
import org.jetbrains.annotations.NotNull;

public final class BrowserUtil {
    public static void browse(@NotNull File file) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

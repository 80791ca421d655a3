package com.intellij.execution.filters;

import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

public interface Filter {
    @Nullable Result applyFilter(@NotNull String line, int entireLength);

    class Result {
        public Result(int highlightStartOffset, int highlightEndOffset, @Nullable HyperlinkInfo hyperlinkInfo) { throw new UnsupportedOperationException("a signature, not the platform"); }
    }
}

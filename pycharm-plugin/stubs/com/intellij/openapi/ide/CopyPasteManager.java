package com.intellij.openapi.ide;

import java.awt.datatransfer.DataFlavor;
import java.awt.datatransfer.Transferable;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

public abstract class CopyPasteManager {
    public static CopyPasteManager getInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public abstract <T> T getContents(@NotNull DataFlavor flavor);
    public abstract void setContents(@NotNull Transferable content);
}

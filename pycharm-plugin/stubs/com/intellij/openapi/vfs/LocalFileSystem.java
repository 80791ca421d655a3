package com.intellij.openapi.vfs;

import java.nio.file.Path;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

public abstract class LocalFileSystem {
    public static LocalFileSystem getInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public abstract @Nullable VirtualFile refreshAndFindFileByNioFile(@NotNull Path file);
}

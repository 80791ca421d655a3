package com.intellij.openapi.vfs;

import java.io.File;

public class VfsUtil {
    public static void markDirtyAndRefresh(boolean async, boolean recursive, boolean reloadChildren, File... files) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

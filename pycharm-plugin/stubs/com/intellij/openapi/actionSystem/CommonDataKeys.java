package com.intellij.openapi.actionSystem;

import com.intellij.openapi.vfs.VirtualFile;

public interface CommonDataKeys {
    DataKey<VirtualFile> VIRTUAL_FILE = new DataKey<>();
}

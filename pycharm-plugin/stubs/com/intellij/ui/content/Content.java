package com.intellij.ui.content;

public interface Content {
    void setDisplayName(String name);
    String getDisplayName();
}

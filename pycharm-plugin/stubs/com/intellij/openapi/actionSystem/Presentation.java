package com.intellij.openapi.actionSystem;

public final class Presentation {
    public void setEnabledAndVisible(boolean enabled) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public boolean isEnabledAndVisible() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public void setText(String text) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public String getText() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

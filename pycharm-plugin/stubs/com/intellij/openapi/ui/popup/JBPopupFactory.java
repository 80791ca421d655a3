package com.intellij.openapi.ui.popup;

import java.util.List;

public abstract class JBPopupFactory {
    public static JBPopupFactory getInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public abstract <T> IPopupChooserBuilder<T> createPopupChooserBuilder(List<? extends T> list);
}

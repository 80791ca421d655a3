package com.intellij.ui.content;

import javax.swing.JComponent;

public interface ContentFactory {
    static ContentFactory getInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
    Content createContent(JComponent component, String displayName, boolean isLockable);
}

package com.intellij.ui;

import com.intellij.openapi.actionSystem.ActionGroup;
import javax.swing.JComponent;
import org.jetbrains.annotations.NotNull;

public abstract class PopupHandler {
    public static void installPopupMenu(@NotNull JComponent component, @NotNull ActionGroup group, @NotNull String place) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

package com.intellij.openapi.actionSystem;

import org.jetbrains.annotations.NotNull;

public abstract class AnAction {
    public abstract void actionPerformed(@NotNull AnActionEvent event);
    public void update(@NotNull AnActionEvent event) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public @NotNull ActionUpdateThread getActionUpdateThread() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public final @NotNull Presentation getTemplatePresentation() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

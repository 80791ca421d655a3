package com.intellij.openapi.actionSystem;

import com.intellij.openapi.project.Project;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

public class AnActionEvent {
    public @Nullable Project getProject() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public @NotNull Presentation getPresentation() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public <T> T getData(@NotNull DataKey<T> key) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

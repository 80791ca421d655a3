package com.intellij.notification;

import com.intellij.openapi.actionSystem.AnAction;
import com.intellij.openapi.project.Project;
import org.jetbrains.annotations.Nullable;

public class Notification {
    public Notification addAction(AnAction action) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public void notify(@Nullable Project project) { throw new UnsupportedOperationException("a signature, not the platform"); }
}

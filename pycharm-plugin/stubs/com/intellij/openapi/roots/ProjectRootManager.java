package com.intellij.openapi.roots;

import com.intellij.openapi.project.Project;
import com.intellij.openapi.projectRoots.Sdk;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

public abstract class ProjectRootManager {
    public static ProjectRootManager getInstance(@NotNull Project project) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public abstract @Nullable Sdk getProjectSdk();
}

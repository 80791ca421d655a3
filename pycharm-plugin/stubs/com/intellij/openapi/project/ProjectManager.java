package com.intellij.openapi.project;

public abstract class ProjectManager {
    public static ProjectManager getInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public abstract Project[] getOpenProjects();
}

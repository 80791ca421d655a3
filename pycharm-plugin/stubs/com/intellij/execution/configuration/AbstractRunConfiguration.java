package com.intellij.execution.configuration;

import com.intellij.execution.configurations.RunConfiguration;
import com.intellij.openapi.project.Project;
import java.util.Map;

public abstract class AbstractRunConfiguration implements RunConfiguration {
    @Override public String getName() { throw new UnsupportedOperationException("a signature, not the platform"); }
    @Override public Project getProject() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public Map<String, String> getEnvs() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public boolean isPassParentEnvs() { throw new UnsupportedOperationException("a signature, not the platform"); }
}

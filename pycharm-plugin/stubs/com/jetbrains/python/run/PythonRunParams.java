package com.jetbrains.python.run;

import java.util.Map;

public interface PythonRunParams {
    Map<String, String> getEnvs();
    boolean isPassParentEnvs();
}

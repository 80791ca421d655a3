package com.jetbrains.python.run

import com.intellij.execution.target.TargetEnvironment
import java.util.function.Function

sealed class PythonExecution {
    val envs: MutableMap<String, Function<TargetEnvironment, String>> get() = throw UnsupportedOperationException("a signature, not the platform")

    @Suppress("UNUSED_PARAMETER")
    fun addEnvironmentVariable(key: String, value: String): Unit = throw UnsupportedOperationException("a signature, not the platform")

    @Suppress("UNUSED_PARAMETER")
    fun addEnvironmentVariable(key: String, value: Function<TargetEnvironment, String>): Unit = throw UnsupportedOperationException("a signature, not the platform")
}

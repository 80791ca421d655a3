package com.jetbrains.python.run.target

import com.intellij.execution.target.TargetEnvironmentRequest
import com.intellij.openapi.project.Project
import com.jetbrains.python.run.PythonExecution
import com.jetbrains.python.run.PythonRunParams

interface HelpersAwareTargetEnvironmentRequest {
    val targetEnvironmentRequest: TargetEnvironmentRequest
}

interface PythonCommandLineTargetEnvironmentProvider {
    fun extendTargetEnvironment(
        project: Project,
        helpersAwareTargetRequest: HelpersAwareTargetEnvironmentRequest,
        pythonExecution: PythonExecution,
        runParams: PythonRunParams,
    )
}

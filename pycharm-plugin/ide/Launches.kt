@file:Suppress("UnstableApiUsage")

package dev.cublame.ide

import com.intellij.execution.configurations.GeneralCommandLine
import com.intellij.execution.configurations.RunnerSettings
import com.intellij.execution.target.TargetEnvironment
import com.intellij.execution.target.local.LocalTargetEnvironmentRequest
import com.intellij.openapi.application.ApplicationManager
import com.intellij.openapi.diagnostic.Logger
import com.intellij.openapi.progress.ProgressManager
import com.intellij.openapi.project.Project
import com.intellij.openapi.util.ThrowableComputable
import com.jetbrains.python.run.AbstractPythonRunConfiguration
import com.jetbrains.python.run.PythonExecution
import com.jetbrains.python.run.PythonRunConfigurationExtension
import com.jetbrains.python.run.PythonRunParams
import com.jetbrains.python.run.target.HelpersAwareTargetEnvironmentRequest
import com.jetbrains.python.run.target.PythonCommandLineTargetEnvironmentProvider
import dev.cublame.core.Launch
import dev.cublame.core.LaunchRequest
import dev.cublame.core.RunConfiguration
import dev.cublame.core.appliedTo
import dev.cublame.core.launchOf
import dev.cublame.core.prepended
import java.io.File
import java.io.IOException
import java.util.function.Function

/**
 * Today's launch path, by targets: Python and pytest, run and debugged.
 *
 * It is called after PyCharm has put its own folders into PYTHONPATH, as functions of a target that is not known yet, so
 * the hook's folder is put before them by a function too (PythonCommandLineState.initEnvironment of PyCharm).
 */
internal class TargetLaunch : PythonCommandLineTargetEnvironmentProvider {
    override fun extendTargetEnvironment(
        project: Project,
        helpersAwareTargetRequest: HelpersAwareTargetEnvironmentRequest,
        pythonExecution: PythonExecution,
        runParams: PythonRunParams,
    ) {
        // The Python console is no run of the user's program.
        val configuration = runParams as? AbstractPythonRunConfiguration<*> ?: return
        val elsewhere = helpersAwareTargetRequest.targetEnvironmentRequest !is LocalTargetEnvironmentRequest
        val launch = launch(project, modelOf(configuration), elsewhere) ?: return
        for ((name, value) in launch.variables) pythonExecution.addEnvironmentVariable(name, value)
        for ((name, first) in launch.firstFolders) {
            val before = pythonExecution.envs[name]
            val after = Function<TargetEnvironment, String> { target -> prepended(first, before?.apply(target), File.pathSeparator) }
            pythonExecution.addEnvironmentVariable(name, after)
        }
    }
}

/** The old launch path, by command line, which PyCharm takes where the registry key `python.use.targets.api` is off. */
internal class CommandLineLaunch : PythonRunConfigurationExtension() {
    override fun isApplicableFor(configuration: AbstractPythonRunConfiguration<*>): Boolean = true

    override fun isEnabledFor(applicableConfiguration: AbstractPythonRunConfiguration<*>, runnerSettings: RunnerSettings?): Boolean =
        CublameSettings.get().values.addToRuns

    override fun patchCommandLine(
        configuration: AbstractPythonRunConfiguration<*>,
        runnerSettings: RunnerSettings?,
        cmdLine: GeneralCommandLine,
        runnerId: String,
    ) {
        val launch = launch(configuration.project, modelOf(configuration), elsewhere = false) ?: return
        val before: Map<String, String> = cmdLine.environment.toMap()
        cmdLine.environment.putAll(launch.appliedTo(before, File.pathSeparator))
    }
}

private fun modelOf(configuration: AbstractPythonRunConfiguration<*>) =
    RunConfiguration(configuration.name, configuration.envs.toMap(), configuration.isPassParentEnvs)

/** What is added to a launch. A launch never fails because of us: then it goes as it would without the plugin. */
private fun launch(project: Project, configuration: RunConfiguration, elsewhere: Boolean): Launch? {
    if (!CublameSettings.get().values.addToRuns) return null
    val ask = ThrowableComputable<Launch?, RuntimeException> { launchOrTell(project, configuration, elsewhere) }
    if (!ApplicationManager.getApplication().isDispatchThread) return ask.compute()
    val title = CublameBundle.message("launch.asking")
    return ProgressManager.getInstance().runProcessWithProgressSynchronously(ask, title, true, project)
}

private fun launchOrTell(project: Project, configuration: RunConfiguration, elsewhere: Boolean): Launch? {
    val ours = CublameProject.get(project)
    val program = ours.program() ?: return null
    val launch = try {
        launchOf(program, LaunchRequest(configuration, ours.wishes(), elsewhere))
    } catch (failure: IOException) {
        LOG.warn("the mode's variables could not be had: ${failure.message}")
        Notifications.warning(project, CublameBundle.message("launch.failed", configuration.name, failure.message.orEmpty()))
        return null
    }
    LOG.info("${configuration.name} runs in mode ${launch.mode.word} with ${launch.variables.keys + launch.firstFolders.keys}")
    if (!launch.mode.startsFromRunConfiguration) {
        Notifications.warning(project, CublameBundle.message("launch.sanitize", configuration.name))
    } else if (elsewhere) {
        LOG.info("${configuration.name} runs on another machine or in a container, where the hook of this one is not")
    }
    return launch
}

private val LOG = Logger.getInstance(TargetLaunch::class.java)

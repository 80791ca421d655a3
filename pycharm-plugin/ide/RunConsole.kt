package dev.cublame.ide

import com.intellij.execution.ExecutionException
import com.intellij.execution.configurations.GeneralCommandLine
import com.intellij.execution.executors.DefaultRunExecutor
import com.intellij.execution.filters.TextConsoleBuilderFactory
import com.intellij.execution.process.KillableColoredProcessHandler
import com.intellij.execution.ui.RunContentDescriptor
import com.intellij.execution.ui.RunContentManager
import com.intellij.openapi.project.Project
import dev.cublame.core.RunInTerminalParams

/** `cublame/runInTerminal`: the run gets a tab of the Run tool window, with its Stop button and clickable places. */
internal fun runInConsole(project: Project, run: RunInTerminalParams) = onEventThread {
    if (!project.isDisposed) {
        try {
            val process = KillableColoredProcessHandler(GeneralCommandLine(run.argv).withWorkDirectory(run.cwd))
            val console = TextConsoleBuilderFactory.getInstance().createBuilder(project).console
            console.attachToProcess(process)
            val tab = RunContentDescriptor(console, process, console.component, run.title)
            RunContentManager.getInstance(project).showRunContent(DefaultRunExecutor.getRunExecutorInstance(), tab)
            process.startNotify()
        } catch (failure: ExecutionException) {
            Notifications.failure(project, failure)
        }
    }
}

@file:Suppress("DEPRECATION")

package dev.cublame.ide

import com.intellij.execution.ExecutionException
import com.intellij.execution.configurations.GeneralCommandLine
import com.intellij.openapi.project.Project
import com.intellij.openapi.vfs.VirtualFile
import com.intellij.platform.lsp.api.Lsp4jClient
import com.intellij.platform.lsp.api.LspServerManager
import com.intellij.platform.lsp.api.LspServerNotificationsHandler
import com.intellij.platform.lsp.api.LspServerState
import com.intellij.platform.lsp.api.LspServerSupportProvider
import com.intellij.platform.lsp.api.ProjectWideLspServerDescriptor
import dev.cublame.core.REPORT
import dev.cublame.core.RUNS
import dev.cublame.core.RUN_IN_TERMINAL
import dev.cublame.core.ReportParams
import dev.cublame.core.RunInTerminalParams
import dev.cublame.core.RunsParams
import dev.cublame.core.ServerCommand
import org.eclipse.lsp4j.ConfigurationItem
import org.eclipse.lsp4j.ExecuteCommandParams
import org.eclipse.lsp4j.jsonrpc.services.JsonNotification
import java.util.concurrent.CompletableFuture

/** The platform's own client. The names are those of 2025.2; 2026.1.4 renamed them and still knows them. */
internal class PlatformLspProvider : LspServerSupportProvider {
    override fun fileOpened(project: Project, file: VirtualFile, serverStarter: LspServerSupportProvider.LspServerStarter) {
        if (!isOurs(file)) return
        // Asked here, where nobody waits: without a program there is nothing to start, and the user has been told.
        if (CublameProject.get(project).program() != null) serverStarter.ensureServerStarted(PlatformLspDescriptor(project))
    }
}

internal class PlatformLspDescriptor(project: Project) : ProjectWideLspServerDescriptor(project, "cublame") {
    override fun isSupportedFile(file: VirtualFile): Boolean = isOurs(file)

    override fun createCommandLine(): GeneralCommandLine {
        val program = CublameProject.get(project).program() ?: throw ExecutionException(CublameBundle.message("server.missing"))
        return GeneralCommandLine(program.path, "lsp")
    }

    override fun createInitializationOptions(): Any = CublameProject.get(project).initializationOptions()

    override fun getWorkspaceConfiguration(item: ConfigurationItem): Any? =
        if (item.section == "cublame") CublameProject.get(project).settingsSection() else super.getWorkspaceConfiguration(item)

    override fun createLsp4jClient(handler: LspServerNotificationsHandler): Lsp4jClient = PlatformLspClient(handler, project)
}

/** Takes the server's own notifications, which are found by their annotation. */
internal class PlatformLspClient(handler: LspServerNotificationsHandler, private val project: Project) : Lsp4jClient(handler) {
    @JsonNotification(RUNS)
    fun runs(params: RunsParams) = CublameProject.get(project).show(params.runs)

    @JsonNotification(REPORT)
    fun report(params: ReportParams) = openReport(project, params)

    @JsonNotification(RUN_IN_TERMINAL)
    fun runInTerminal(params: RunInTerminalParams) = runInConsole(project, params)
}

internal class PlatformConnector : Connector {
    override val rank = 0

    override fun execute(project: Project, command: ServerCommand): CompletableFuture<Any?>? {
        val servers = LspServerManager.getInstance(project).getServersForProvider(PlatformLspProvider::class.java)
        val server = servers.firstOrNull { it.state == LspServerState.Running } ?: return null
        val answer = CompletableFuture<Any?>()
        // `sendRequest` keeps the server's error to itself; the user is to see it.
        server.sendNotification { lsp ->
            lsp.workspaceService.executeCommand(ExecuteCommandParams(command.name, command.arguments)).whenComplete { value, failure ->
                if (failure == null) answer.complete(value) else answer.completeExceptionally(failure)
            }
        }
        return answer
    }

    override fun restart(project: Project) = LspServerManager.getInstance(project).stopAndRestartIfNeeded(PlatformLspProvider::class.java)
}

package dev.cublame.ide

import com.intellij.execution.configurations.GeneralCommandLine
import com.intellij.openapi.project.Project
import com.intellij.openapi.vfs.VirtualFile
import com.redhat.devtools.lsp4ij.LanguageServerFactory
import com.redhat.devtools.lsp4ij.LanguageServerManager
import com.redhat.devtools.lsp4ij.ServerStatus
import com.redhat.devtools.lsp4ij.client.LanguageClientImpl
import com.redhat.devtools.lsp4ij.client.features.LSPClientFeatures
import com.redhat.devtools.lsp4ij.server.OSProcessStreamConnectionProvider
import com.redhat.devtools.lsp4ij.server.StreamConnectionProvider
import dev.cublame.core.REPORT
import dev.cublame.core.RUNS
import dev.cublame.core.RUN_IN_TERMINAL
import dev.cublame.core.ReportParams
import dev.cublame.core.RunInTerminalParams
import dev.cublame.core.RunsParams
import dev.cublame.core.ServerCommand
import org.eclipse.lsp4j.ExecuteCommandParams
import org.eclipse.lsp4j.InitializeParams
import org.eclipse.lsp4j.jsonrpc.services.JsonNotification
import java.util.concurrent.CompletableFuture

/** The client of the plugin LSP4IJ, for an IDE without the platform's. */
internal class Lsp4ijFactory : LanguageServerFactory {
    override fun createConnectionProvider(project: Project): StreamConnectionProvider {
        val program = CublameProject.get(project).program() ?: throw IllegalStateException(CublameBundle.message("server.missing"))
        return OSProcessStreamConnectionProvider(GeneralCommandLine(program.path, "lsp"))
    }

    override fun createLanguageClient(project: Project): LanguageClientImpl = Lsp4ijClient(project)

    override fun createClientFeatures(): LSPClientFeatures = Lsp4ijFeatures()
}

internal class Lsp4ijFeatures : LSPClientFeatures() {
    /** Never both clients: a second server would show everything twice. */
    override fun isEnabled(file: VirtualFile): Boolean = isOurs(file) && Connector.active() is Lsp4ijConnector

    override fun initializeParams(initializeParams: InitializeParams) {
        initializeParams.initializationOptions = CublameProject.get(project).initializationOptions()
    }
}

internal class Lsp4ijClient(project: Project) : LanguageClientImpl(project) {
    /** What `workspace/configuration` answers from. */
    override fun createSettings(): Any = mapOf("cublame" to CublameProject.get(project).settingsSection())

    @JsonNotification(RUNS)
    fun runs(params: RunsParams) = CublameProject.get(project).show(params.runs)

    @JsonNotification(REPORT)
    fun report(params: ReportParams) = openReport(project, params)

    @JsonNotification(RUN_IN_TERMINAL)
    fun runInTerminal(params: RunInTerminalParams) = runInConsole(project, params)
}

internal class Lsp4ijConnector : Connector {
    override val rank = 1

    override fun execute(project: Project, command: ServerCommand): CompletableFuture<Any?>? {
        val manager = LanguageServerManager.getInstance(project)
        if (manager.getServerStatus(SERVER_ID) != ServerStatus.started) return null
        return manager.getLanguageServer(SERVER_ID).thenCompose { item ->
            val server = item?.server ?: throw IllegalStateException(CublameBundle.message("server.not.running"))
            server.workspaceService.executeCommand(ExecuteCommandParams(command.name, command.arguments))
        }
    }

    override fun restart(project: Project) {
        val manager = LanguageServerManager.getInstance(project)
        manager.stop(SERVER_ID)
        manager.start(SERVER_ID)
    }
}

private const val SERVER_ID = "cublame"

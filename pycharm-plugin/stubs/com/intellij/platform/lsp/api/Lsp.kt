package com.intellij.platform.lsp.api

import com.intellij.execution.configurations.GeneralCommandLine
import com.intellij.openapi.project.Project
import com.intellij.openapi.vfs.VirtualFile
import org.eclipse.lsp4j.ConfigurationItem
import org.eclipse.lsp4j.services.LanguageClient
import org.eclipse.lsp4j.services.LanguageServer

interface LspServerSupportProvider {
    fun fileOpened(project: Project, file: VirtualFile, serverStarter: LspServerStarter)

    interface LspServerStarter {
        fun ensureServerStarted(descriptor: LspServerDescriptor)
    }
}

abstract class LspServerDescriptor protected constructor(val project: Project, val presentableName: String, vararg val roots: VirtualFile) {
    abstract fun isSupportedFile(file: VirtualFile): Boolean

    open fun createCommandLine(): GeneralCommandLine = throw UnsupportedOperationException("a signature, not the platform")

    open fun createInitializationOptions(): Any? = throw UnsupportedOperationException("a signature, not the platform")

    open fun createLsp4jClient(handler: LspServerNotificationsHandler): Lsp4jClient = throw UnsupportedOperationException("a signature, not the platform")

    open fun getWorkspaceConfiguration(item: ConfigurationItem): Any? = throw UnsupportedOperationException("a signature, not the platform")
}

abstract class ProjectWideLspServerDescriptor(project: Project, presentableName: String) : LspServerDescriptor(project, presentableName)

interface LspServerNotificationsHandler

open class Lsp4jClient(@Suppress("unused") private val serverNotificationsHandler: LspServerNotificationsHandler) : LanguageClient

interface Lsp4jServer : LanguageServer

enum class LspServerState { Initializing, Running, ShutdownNormally, ShutdownUnexpectedly }

interface LspServer {
    val state: LspServerState

    fun sendNotification(lsp4jSender: (Lsp4jServer) -> Unit)
}

interface LspServerManager {
    fun getServersForProvider(providerClass: Class<out LspServerSupportProvider>): Collection<LspServer>

    fun stopAndRestartIfNeeded(providerClass: Class<out LspServerSupportProvider>)

    companion object {
        @JvmStatic
        @Suppress("UNUSED_PARAMETER")
        fun getInstance(project: Project): LspServerManager = throw UnsupportedOperationException("a signature, not the platform")
    }
}

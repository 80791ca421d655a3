package dev.cublame.ide

import com.intellij.openapi.extensions.ExtensionPointName
import com.intellij.openapi.project.Project
import com.intellij.openapi.vfs.VirtualFile
import dev.cublame.core.ServerCommand
import java.util.concurrent.CompletableFuture

/**
 * A client of the language server. There are two, each in an optional part of the plugin: the platform's own and LSP4IJ.
 * Where both are there, the platform's is used and the other one stands back.
 */
internal interface Connector {
    /** The smallest is used. */
    val rank: Int

    /** Sends a command; null where no server runs. */
    fun execute(project: Project, command: ServerCommand): CompletableFuture<Any?>?

    fun restart(project: Project)

    companion object {
        private val POINT = ExtensionPointName<Connector>("dev.cublame.connector")

        fun active(): Connector? = POINT.extensionList.minByOrNull { it.rank }
    }
}

/** The files that the server has something to say about. */
internal fun isOurs(file: VirtualFile): Boolean = file.isInLocalFileSystem && file.extension?.lowercase() in setOf("py", "pyi", "cu", "cuh")

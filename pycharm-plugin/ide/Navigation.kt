package dev.cublame.ide

import com.intellij.ide.BrowserUtil
import com.intellij.openapi.fileEditor.OpenFileDescriptor
import com.intellij.openapi.project.Project
import com.intellij.openapi.vfs.LocalFileSystem
import dev.cublame.core.ReportParams
import dev.cublame.core.Target
import java.io.File
import java.net.URI
import java.net.URISyntaxException
import java.nio.file.InvalidPathException
import java.nio.file.Path

/** Shows a line in the editor. */
internal fun goTo(project: Project, target: Target) = open(project, target.path, target.line)

/** `cublame/report`: the page lies in the run's folder. */
internal fun openReport(project: Project, report: ReportParams) {
    val path = try {
        URI(report.uri).takeIf { it.scheme == "file" }?.let { Path.of(it).toString() }
    } catch (_: URISyntaxException) {
        null
    } catch (_: IllegalArgumentException) {
        null
    }
    when {
        path == null -> Unit
        // A page is for a browser.
        path.endsWith(".html") -> BrowserUtil.browse(File(path))
        else -> open(project, path, 1)
    }
}

private fun open(project: Project, path: String, line: Int) = inBackground {
    val file = try {
        LocalFileSystem.getInstance().refreshAndFindFileByNioFile(Path.of(path))
    } catch (_: InvalidPathException) {
        null
    }
    onEventThread {
        when {
            project.isDisposed -> Unit
            file == null -> Notifications.warning(project, CublameBundle.message("file.missing", path))
            else -> OpenFileDescriptor(project, file, line - 1, 0).navigate(true)
        }
    }
}

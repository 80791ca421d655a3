package dev.cublame.ide

import com.intellij.execution.filters.ConsoleFilterProvider
import com.intellij.execution.filters.Filter
import com.intellij.execution.filters.HyperlinkInfo
import com.intellij.openapi.fileEditor.FileDocumentManager
import com.intellij.openapi.fileEditor.OpenFileDescriptor
import com.intellij.openapi.project.Project
import com.intellij.openapi.vfs.LocalFileSystem
import com.intellij.openapi.vfs.VirtualFile
import dev.cublame.core.ConsolePlace
import dev.cublame.core.consolePlace
import dev.cublame.core.editorColumn
import java.nio.file.InvalidPathException
import java.nio.file.Path

/** Makes the places of verdicts clickable in the consoles of runs. */
internal class ConsoleLinksProvider : ConsoleFilterProvider {
    override fun getDefaultFilters(project: Project): Array<Filter> = arrayOf(ConsoleLinks(project))
}

internal class ConsoleLinks(private val project: Project) : Filter {
    override fun applyFilter(line: String, entireLength: Int): Filter.Result? {
        val place = consolePlace(line) ?: return null
        val start = entireLength - line.length
        // The file is looked for at the click: a filter sees every line of a training.
        return Filter.Result(start + place.range.first, start + place.range.last + 1, HyperlinkInfo { navigate(it, place) })
    }

    private fun navigate(project: Project, place: ConsolePlace) {
        val file = find(place.path)
        if (file == null) {
            Notifications.warning(project, CublameBundle.message("file.missing", place.path))
            return
        }
        val text = FileDocumentManager.getInstance().getDocument(file)?.text?.lines()?.getOrNull(place.line - 1).orEmpty()
        val column = place.column?.let { editorColumn(text, it) } ?: 0
        OpenFileDescriptor(project, file, place.line - 1, column).navigate(true)
    }

    /** A relative path is as the program's traceback had it, most often from the project's root. */
    private fun find(path: String): VirtualFile? = try {
        val absolute = project.basePath?.let { Path.of(it).resolve(path) } ?: Path.of(path)
        LocalFileSystem.getInstance().refreshAndFindFileByNioFile(absolute)
    } catch (_: InvalidPathException) {
        null
    }
}

package dev.cublame.ide

import com.intellij.openapi.actionSystem.ActionUpdateThread
import com.intellij.openapi.actionSystem.AnActionEvent
import com.intellij.openapi.actionSystem.CommonDataKeys
import com.intellij.openapi.ide.CopyPasteManager
import com.intellij.openapi.project.DumbAwareAction
import com.intellij.openapi.project.Project
import com.intellij.openapi.ui.popup.JBPopup
import com.intellij.openapi.ui.popup.JBPopupFactory
import com.intellij.openapi.vfs.VfsUtil
import com.intellij.ui.SimpleListCellRenderer
import dev.cublame.core.Commands
import dev.cublame.core.Mode
import dev.cublame.core.Wanted
import java.awt.datatransfer.DataFlavor
import java.io.IOException

/** An action of a project's. */
internal abstract class ProjectAction : DumbAwareAction() {
    override fun getActionUpdateThread(): ActionUpdateThread = ActionUpdateThread.BGT

    override fun update(event: AnActionEvent) {
        event.presentation.isEnabledAndVisible = event.project != null
    }

    override fun actionPerformed(event: AnActionEvent) {
        event.project?.let { perform(it, event) }
    }

    abstract fun perform(project: Project, event: AnActionEvent)
}

internal class SetModeAction : ProjectAction() {
    override fun perform(project: Project, event: AnActionEvent) = modePopup(project).showCenteredInCurrentWindow(project)
}

/** The modes with what they give and cost. */
internal fun modePopup(
    project: Project,
    title: String = CublameBundle.message("mode.title"),
    chosen: (Mode) -> Unit = CublameProject.get(project)::chooseMode,
): JBPopup = JBPopupFactory.getInstance().createPopupChooserBuilder(Mode.entries)
    .setTitle(title)
    .setRenderer(SimpleListCellRenderer.create<Mode>("") { "${CublameBundle.name(it)}: ${CublameBundle.explanation(it)}" })
    .setItemChosenCallback { chosen(it) }
    .createPopup()

/** Blames a log that the user has copied, of whatever origin. */
internal class ExplainClipboardAction : ProjectAction() {
    override fun perform(project: Project, event: AnActionEvent) {
        val text: String? = CopyPasteManager.getInstance().getContents(DataFlavor.stringFlavor)
        if (text.isNullOrBlank()) {
            Notifications.information(project, CublameBundle.message("explain.empty"))
        } else {
            CublameProject.get(project).execute(Commands.explainText(text))
        }
    }
}

internal class OpenReportAction : ProjectAction() {
    override fun perform(project: Project, event: AnActionEvent) = CublameProject.get(project).execute(Commands.openReport())
}

internal class RestartServerAction : ProjectAction() {
    override fun perform(project: Project, event: AnActionEvent) = CublameProject.get(project).restart()
}

/** Writes run configurations, through `cublame configure pycharm`. */
internal class CreateConfigurationsAction : ProjectAction() {
    override fun perform(project: Project, event: AnActionEvent) {
        val file = event.getData(CommonDataKeys.VIRTUAL_FILE)?.takeIf { it.extension == "py" }
        val choices = buildList {
            add(Choice(CublameBundle.message("configure.copies"), Wanted.Copies))
            if (file != null) {
                add(Choice(CublameBundle.message("configure.program", file.name), Wanted.ForProgram(file.path)))
                add(Choice(CublameBundle.message("configure.tests", file.name), Wanted.ForTests(file.path)))
            }
            add(Choice(CublameBundle.message("configure.remove"), Wanted.Removal))
        }
        JBPopupFactory.getInstance().createPopupChooserBuilder(choices)
            .setTitle(CublameBundle.message("configure.title"))
            .setRenderer(SimpleListCellRenderer.create<Choice>("") { it.title })
            .setItemChosenCallback { inBackground { configure(project, it.wanted) } }
            .createPopup()
            .showCenteredInCurrentWindow(project)
    }

    private fun configure(project: Project, wanted: Wanted) {
        val ours = CublameProject.get(project)
        val root = ours.root ?: return
        val program = ours.program() ?: return
        val printed = try {
            program.configure(root, wanted)
        } catch (failure: IOException) {
            Notifications.failure(project, failure)
            return
        }
        val said = (printed.output + printed.notes).trim()
        if (printed.exitCode == 0) Notifications.information(project, said) else Notifications.error(project, said)
        VfsUtil.markDirtyAndRefresh(true, true, true, root.resolve(".run").toFile(), root.resolve(".idea").toFile())
    }

    private data class Choice(val title: String, val wanted: Wanted)
}

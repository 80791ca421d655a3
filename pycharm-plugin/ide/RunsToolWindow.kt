package dev.cublame.ide

import com.intellij.openapi.actionSystem.AnActionEvent
import com.intellij.openapi.actionSystem.DefaultActionGroup
import com.intellij.openapi.ide.CopyPasteManager
import com.intellij.openapi.project.DumbAware
import com.intellij.openapi.project.Project
import com.intellij.openapi.wm.ToolWindow
import com.intellij.openapi.wm.ToolWindowFactory
import com.intellij.ui.PopupHandler
import com.intellij.ui.components.JBScrollPane
import com.intellij.ui.content.ContentFactory
import com.intellij.ui.treeStructure.Tree
import dev.cublame.core.Commands
import dev.cublame.core.RunRow
import dev.cublame.core.VerdictRow
import dev.cublame.core.rows
import dev.cublame.core.standingFailures
import java.awt.datatransfer.StringSelection
import java.awt.event.MouseAdapter
import java.awt.event.MouseEvent
import javax.swing.tree.DefaultMutableTreeNode
import javax.swing.tree.DefaultTreeModel

/** The runs of the project with what each of them said. */
internal class RunsToolWindow : ToolWindowFactory, DumbAware {
    override fun createToolWindowContent(project: Project, toolWindow: ToolWindow) {
        val tree = RunsTree(project)
        val content = ContentFactory.getInstance().createContent(JBScrollPane(tree), "", false)
        toolWindow.contentManager.addContent(content)
        fun refresh() {
            tree.refill()
            val failures = standingFailures(CublameProject.get(project).runs)
            content.displayName = if (failures == 0) "" else CublameBundle.message("runs.failures", failures)
        }
        val connection = project.messageBus.connect(toolWindow.disposable)
        connection.subscribe(CublameProject.CHANGED, CublameProject.Listener { onEventThread(::refresh) })
        refresh()
    }
}

internal class RunsTree(private val project: Project) : Tree(DefaultTreeModel(DefaultMutableTreeNode())) {
    init {
        isRootVisible = false
        addMouseListener(object : MouseAdapter() {
            override fun mouseClicked(event: MouseEvent) {
                if (event.clickCount == 2) selectedVerdict()?.target?.let { goTo(project, it) }
            }
        })
        PopupHandler.installPopupMenu(this, DefaultActionGroup(actions()), "cublame.runs")
    }

    fun refill() {
        val root = DefaultMutableTreeNode()
        for (row in rows(CublameProject.get(project).runs, System.currentTimeMillis() / MILLISECONDS)) {
            val node = DefaultMutableTreeNode(RunLine(row))
            for (verdict in row.verdicts) {
                val below = DefaultMutableTreeNode(VerdictLine(verdict))
                for (other in verdict.verdict.collateral) below.add(DefaultMutableTreeNode(other.summary))
                node.add(below)
            }
            root.add(node)
        }
        (model as DefaultTreeModel).setRoot(root)
        if (root.childCount > 0) expandRow(0)
    }

    private fun actions(): List<ProjectAction> {
        val ours = CublameProject.get(project)
        return listOf(
            action("runs.show") { _, verdict -> verdict?.target?.let { goTo(project, it) } },
            action("runs.rerun") { row, _ ->
                val title = CublameBundle.message("runs.rerun.title", row.name)
                modePopup(project, title) { mode -> ours.execute(Commands.rerun(row.run.id, mode)) }.showCenteredInCurrentWindow(project)
            },
            action("runs.stop") { row, _ -> ours.execute(Commands.stop(row.run.id)) },
            action("runs.report") { row, _ -> ours.execute(Commands.openReport(row.run.id)) },
            action("runs.copy") { row, _ ->
                ours.execute(Commands.copyReport(row.run.id)) { text ->
                    onEventThread { CopyPasteManager.getInstance().setContents(StringSelection(text.toString())) }
                }
            },
            action("runs.dismiss") { row, _ -> ours.execute(Commands.dismiss(row.run.id)) },
            action("runs.delete") { row, _ -> ours.execute(Commands.delete(row.run.id)) },
        )
    }

    private fun action(key: String, work: (RunRow, VerdictRow?) -> Unit) = object : ProjectAction() {
        init {
            templatePresentation.text = CublameBundle.message(key)
        }

        override fun perform(project: Project, event: AnActionEvent) {
            val row = path().firstNotNullOfOrNull { (it as? RunLine)?.row } ?: return
            work(row, selectedVerdict() ?: row.verdicts.firstOrNull())
        }
    }

    private fun selectedVerdict(): VerdictRow? = path().firstNotNullOfOrNull { (it as? VerdictLine)?.row }

    /** What stands at the selected line and above it. */
    private fun path(): List<Any> = selectionPath?.path.orEmpty().mapNotNull { (it as? DefaultMutableTreeNode)?.userObject }

    private class RunLine(val row: RunRow) {
        override fun toString() = listOf(
            row.name,
            row.failure?.kind ?: CublameBundle.message("run.${row.run.state}"),
            row.run.mode,
            CublameBundle.age(row.age),
        ).joinToString("  ")
    }

    private class VerdictLine(val row: VerdictRow) {
        override fun toString() = listOfNotNull(
            row.verdict.summary,
            row.where ?: CublameBundle.message("runs.no.line"),
            CublameBundle.message("certainty.${row.verdict.certainty}"),
            row.verdict.rank?.let { CublameBundle.message("runs.rank", it) },
            if (row.verdict.fatal) null else CublameBundle.message("runs.caught"),
        ).joinToString("  ")
    }
}

private const val MILLISECONDS = 1000.0

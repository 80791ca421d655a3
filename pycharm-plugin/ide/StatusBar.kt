package dev.cublame.ide

import com.intellij.openapi.project.Project
import com.intellij.openapi.ui.popup.JBPopup
import com.intellij.openapi.wm.StatusBar
import com.intellij.openapi.wm.StatusBarWidget
import com.intellij.openapi.wm.StatusBarWidgetFactory

/** The mode, at the bottom of the window; a click changes it. */
internal class ModeWidgetFactory : StatusBarWidgetFactory {
    override fun getId(): String = ID

    override fun getDisplayName(): String = CublameBundle.message("widget.name")

    override fun createWidget(project: Project): StatusBarWidget = ModeWidget(project)

    companion object {
        const val ID = "dev.cublame.mode"
    }
}

internal class ModeWidget(private val project: Project) : StatusBarWidget, StatusBarWidget.MultipleTextValuesPresentation {
    override fun ID(): String = ModeWidgetFactory.ID

    override fun getPresentation(): StatusBarWidget.WidgetPresentation = this

    override fun install(statusBar: StatusBar) {
        val connection = project.messageBus.connect(this)
        connection.subscribe(CublameProject.CHANGED, CublameProject.Listener { onEventThread { statusBar.updateWidget(ID()) } })
    }

    override fun getSelectedValue(): String = CublameBundle.message("widget.text", CublameBundle.name(CublameProject.get(project).mode))

    override fun getTooltipText(): String = CublameBundle.explanation(CublameProject.get(project).mode)

    override fun getPopup(): JBPopup = modePopup(project)

    override fun dispose() = Unit
}

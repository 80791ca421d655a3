package com.intellij.openapi.wm

import com.intellij.openapi.Disposable
import com.intellij.openapi.project.Project
import com.intellij.openapi.ui.popup.JBPopup

interface ToolWindowFactory {
    fun createToolWindowContent(project: Project, toolWindow: ToolWindow)
}

interface StatusBarWidget : Disposable {
    fun ID(): String

    fun getPresentation(): WidgetPresentation? = throw UnsupportedOperationException("a signature, not the platform")

    fun install(statusBar: StatusBar) {}

    override fun dispose() {}

    interface WidgetPresentation {
        fun getTooltipText(): String?
    }

    interface MultipleTextValuesPresentation : WidgetPresentation {
        fun getPopup(): JBPopup? = throw UnsupportedOperationException("a signature, not the platform")

        fun getSelectedValue(): String?
    }
}

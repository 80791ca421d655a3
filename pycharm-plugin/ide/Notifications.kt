package dev.cublame.ide

import com.intellij.notification.NotificationAction
import com.intellij.notification.NotificationGroupManager
import com.intellij.notification.NotificationType
import com.intellij.openapi.project.Project
import com.intellij.openapi.util.text.StringUtil
import java.util.concurrent.CompletionException

/** What the user is told outside of the editor. The text is shown as HTML, and some of it comes from logs. */
internal object Notifications {
    fun error(project: Project?, text: String, action: Pair<String, () -> Unit>? = null) =
        show(project, text, NotificationType.ERROR, action)

    fun warning(project: Project?, text: String) = show(project, text, NotificationType.WARNING, null)

    fun information(project: Project?, text: String) = show(project, text, NotificationType.INFORMATION, null)

    /** The server's own sentence, out of what the future wrapped it in. */
    fun failure(project: Project?, failure: Throwable) {
        val cause = if (failure is CompletionException) failure.cause ?: failure else failure
        error(project, cause.message ?: cause.toString())
    }

    private fun show(project: Project?, text: String, type: NotificationType, action: Pair<String, () -> Unit>?) {
        val escaped = StringUtil.escapeXmlEntities(text)
        val notification = NotificationGroupManager.getInstance().getNotificationGroup("cublame").createNotification(escaped, type)
        action?.let { (title, run) -> notification.addAction(NotificationAction.createSimple(title, run)) }
        notification.notify(project)
    }
}

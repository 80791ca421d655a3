package dev.cublame.ide

import com.intellij.DynamicBundle
import com.intellij.ide.plugins.PluginManagerCore
import com.intellij.ide.trustedProjects.TrustedProjects
import com.intellij.openapi.Disposable
import com.intellij.openapi.application.ApplicationManager
import com.intellij.openapi.diagnostic.Logger
import com.intellij.openapi.extensions.PluginId
import com.intellij.openapi.options.ShowSettingsUtil
import com.intellij.openapi.project.Project
import com.intellij.openapi.roots.ProjectRootManager
import com.intellij.openapi.util.SystemInfo
import com.intellij.openapi.vfs.VirtualFileManager
import com.intellij.openapi.vfs.newvfs.BulkFileListener
import com.intellij.openapi.vfs.newvfs.events.VFileEvent
import com.intellij.util.EnvironmentUtil
import com.intellij.util.messages.Topic
import dev.cublame.core.Commands
import dev.cublame.core.Located
import dev.cublame.core.Mode
import dev.cublame.core.Program
import dev.cublame.core.Run
import dev.cublame.core.ServerCommand
import dev.cublame.core.Surroundings
import dev.cublame.core.Wishes
import dev.cublame.core.initializationOptions
import dev.cublame.core.locate
import dev.cublame.core.modeOfLaunch
import dev.cublame.core.projectFolder
import dev.cublame.core.readMode
import dev.cublame.core.settingsSection
import dev.cublame.core.writeMode
import java.io.IOException
import java.nio.file.Path

/** What cublame knows of one project: its program, its mode, its runs. */
internal class CublameProject(private val project: Project) : Disposable {
    @Volatile
    var runs: List<Run> = emptyList()
        private set

    @Volatile
    private var located: Located? = null

    @Volatile
    private var told = false

    init {
        val connection = ApplicationManager.getApplication().messageBus.connect(this)
        connection.subscribe(VirtualFileManager.VFS_CHANGES, object : BulkFileListener {
            override fun after(events: MutableList<out VFileEvent>) {
                if (events.any { it.file?.path?.endsWith("/.cublame/mode") == true }) changed()
            }
        })
    }

    /** The program; null where none can be used, which the user is told once. Never on the event thread: it is asked for its version. */
    fun program(): Program? {
        val found = located ?: find().also { located = it }
        return when (found) {
            is Located.Found -> Program(found.path)
            is Located.Missing -> null.also { tellThatThereIsNone(found) }
        }
    }

    /** Looks for the program again, and starts the server anew. */
    fun restart() {
        located = null
        told = false
        Connector.active()?.restart(project)
        changed()
    }

    /** The mode of a run that does not name its own. */
    val mode: Mode get() = modeOfLaunch(wishes())

    fun wishes() = Wishes(
        workspace = root?.let { readMode(projectFolder(it, inherited["CUBLAME_DIR"])) },
        setting = CublameSettings.get().values.mode,
        inherited = inherited,
    )

    /** Written by the server where one runs, so that it knows at once; else by the plugin itself. */
    fun chooseMode(mode: Mode) = inBackground {
        val sent = Connector.active()?.execute(project, Commands.setMode(mode))
        if (sent != null) {
            sent.whenComplete { _, failure ->
                if (failure != null) Notifications.failure(project, failure)
                changed()
            }
        } else {
            try {
                root?.let { writeMode(projectFolder(it, inherited["CUBLAME_DIR"]), mode) }
            } catch (failure: IOException) {
                Notifications.failure(project, failure)
            }
            changed()
        }
    }

    /** Sends a command to the server, and tells what it says against it. */
    fun execute(command: ServerCommand, then: (Any?) -> Unit = {}) {
        val sent = Connector.active()?.execute(project, command)
        if (sent == null) {
            Notifications.warning(project, CublameBundle.message("server.not.running"))
            return
        }
        sent.whenComplete { value, failure -> if (failure == null) then(value) else Notifications.failure(project, failure) }
    }

    /** `cublame/runs`. */
    fun show(runs: List<Run>) {
        this.runs = runs
        changed()
    }

    fun initializationOptions(): Map<String, Any> = initializationOptions(CublameSettings.get().values, python, locale)

    fun settingsSection(): Map<String, Any> = settingsSection(CublameSettings.get().values, python, locale)

    val root: Path? get() = project.basePath?.let(Path::of)

    override fun dispose() = Unit

    private fun find(): Located {
        val around = Surroundings(
            trusted = TrustedProjects.isProjectTrusted(project),
            windows = SystemInfo.isWindows,
            setting = CublameSettings.get().values.serverPath,
            plugin = PluginManagerCore.getPlugin(PluginId.getId(PLUGIN_ID))?.pluginPath?.toString(),
            python = python,
            path = inherited["PATH"].orEmpty(),
        )
        return locate(around) { Program(it).version() }.also { LOG.info(it.log) }
    }

    /** Never of a project that is not trusted. A remote interpreter's address is no path, and is left out. */
    private val python: String?
        get() {
            if (!TrustedProjects.isProjectTrusted(project)) return null
            return ProjectRootManager.getInstance(project).projectSdk?.homePath?.takeIf { java.io.File(it).isAbsolute }
        }

    private fun tellThatThereIsNone(missing: Located.Missing) {
        if (told) return
        told = true
        val text = (listOf(CublameBundle.message("server.missing")) + missing.refused).joinToString(" ")
        Notifications.error(project, text, CublameBundle.message("settings.open") to {
            ShowSettingsUtil.getInstance().showSettingsDialog(project, SettingsPage::class.java)
        })
    }

    private fun changed() {
        if (!project.isDisposed) project.messageBus.syncPublisher(CHANGED).cublameChanged()
    }

    fun interface Listener {
        fun cublameChanged()
    }

    companion object {
        const val PLUGIN_ID = "dev.cublame"
        val CHANGED: Topic<Listener> = Topic.create("the mode or the runs changed", Listener::class.java)

        fun get(project: Project): CublameProject = project.getService(CublameProject::class.java)

        private val locale: String get() = DynamicBundle.getLocale().toLanguageTag()

        private val LOG = Logger.getInstance(CublameProject::class.java)

        /** The user's environment as a login shell has it, which on macOS is not that of the IDE's process. */
        private val inherited: Map<String, String> get() = EnvironmentUtil.getEnvironmentMap()
    }
}

internal fun inBackground(work: () -> Unit) {
    ApplicationManager.getApplication().executeOnPooledThread(work)
}

internal fun onEventThread(work: () -> Unit) = ApplicationManager.getApplication().invokeLater(work)

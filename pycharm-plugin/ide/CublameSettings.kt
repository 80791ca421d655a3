package dev.cublame.ide

import com.intellij.openapi.application.ApplicationManager
import com.intellij.openapi.components.PersistentStateComponent
import com.intellij.openapi.components.State
import com.intellij.openapi.components.Storage
import dev.cublame.core.Mode
import dev.cublame.core.Settings
import dev.cublame.core.parseMappings
import dev.cublame.core.writtenMappings

/** The settings of the user, for all projects: nothing of a project may name a program that is then started. */
@State(name = "dev.cublame", storages = [Storage("cublame.xml")])
internal class CublameSettings : PersistentStateComponent<CublameSettings.Stored> {
    private var stored = Stored()

    /** As it is written to the disk. */
    class Stored {
        var serverPath: String = ""
        var mode: String = ""
        var pathMappings: String = ""
        var addToRuns: Boolean = true
    }

    var values: Settings
        get() = Settings(stored.serverPath, Mode.of(stored.mode), parseMappings(stored.pathMappings).orEmpty(), stored.addToRuns)
        set(values) {
            stored = Stored().apply {
                serverPath = values.serverPath
                mode = values.mode?.word.orEmpty()
                pathMappings = writtenMappings(values.pathMappings)
                addToRuns = values.addToRuns
            }
        }

    override fun getState(): Stored = stored

    override fun loadState(state: Stored) {
        stored = state
    }

    companion object {
        fun get(): CublameSettings = ApplicationManager.getApplication().getService(CublameSettings::class.java)
    }
}

package dev.cublame.ide

import com.intellij.openapi.options.Configurable
import com.intellij.openapi.options.ConfigurationException
import com.intellij.openapi.project.ProjectManager
import com.intellij.ui.SimpleListCellRenderer
import com.intellij.ui.components.JBCheckBox
import com.intellij.ui.components.JBTextArea
import com.intellij.ui.components.JBTextField
import com.intellij.util.ui.FormBuilder
import dev.cublame.core.Mode
import dev.cublame.core.Settings
import dev.cublame.core.parseMappings
import dev.cublame.core.writtenMappings
import javax.swing.JComboBox
import javax.swing.JComponent

/** Settings | Tools | cublame. */
internal class SettingsPage : Configurable {
    private val serverPath = JBTextField()
    private val mode = JComboBox<Mode?>(arrayOf<Mode?>(null) + Mode.entries)
    private val pathMappings = JBTextArea(MAPPING_ROWS, MAPPING_COLUMNS)
    private val addToRuns = JBCheckBox(CublameBundle.message("settings.add.to.runs"))

    override fun getDisplayName(): String = "cublame"

    override fun createComponent(): JComponent {
        mode.renderer = SimpleListCellRenderer.create<Mode?>(CublameBundle.message("settings.mode.none")) { it?.let(CublameBundle::name) }
        return FormBuilder.createFormBuilder()
            .addLabeledComponent(CublameBundle.message("settings.server.path"), serverPath)
            .addTooltip(CublameBundle.message("settings.server.path.hint"))
            .addLabeledComponent(CublameBundle.message("settings.mode"), mode)
            .addComponent(addToRuns)
            .addLabeledComponent(CublameBundle.message("settings.mappings"), pathMappings)
            .addTooltip(CublameBundle.message("settings.mappings.hint"))
            .addComponentFillVertically(javax.swing.JPanel(), 0)
            .panel
    }

    override fun isModified(): Boolean = parseMappings(pathMappings.text) == null || shown() != CublameSettings.get().values

    override fun apply() {
        if (parseMappings(pathMappings.text) == null) throw ConfigurationException(CublameBundle.message("settings.mappings.hint"))
        CublameSettings.get().values = shown()
        for (project in ProjectManager.getInstance().openProjects) CublameProject.get(project).restart()
    }

    override fun reset() {
        val values = CublameSettings.get().values
        serverPath.text = values.serverPath
        mode.selectedItem = values.mode
        pathMappings.text = writtenMappings(values.pathMappings)
        addToRuns.isSelected = values.addToRuns
    }

    private fun shown() = Settings(
        serverPath.text.trim(),
        mode.selectedItem as Mode?,
        parseMappings(pathMappings.text).orEmpty(),
        addToRuns.isSelected,
    )
}

private const val MAPPING_ROWS = 4
private const val MAPPING_COLUMNS = 60

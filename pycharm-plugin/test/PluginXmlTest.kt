package dev.cublame.ide

import org.junit.Test
import org.w3c.dom.Element
import org.w3c.dom.Node
import java.lang.reflect.Modifier
import java.nio.file.Files
import java.nio.file.Path
import javax.xml.parsers.DocumentBuilderFactory
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** Every class that the plugin's descriptors name is there, and is what its extension point asks for. */
class PluginXmlTest {
    private val folder = Path.of(System.getProperty("plugin"), "resources/META-INF")
    private val descriptors = Files.list(folder).use { files -> files.filter { it.toString().endsWith(".xml") }.toList() }
        .associate { it.fileName.toString() to parse(it) }

    /** By extension point: the attribute that names the class, and what the class has to be. Null: no class is named. */
    private val points: Map<String, Pair<String, String>?> = mapOf(
        "com.intellij.applicationService" to ("serviceImplementation" to "com.intellij.openapi.components.PersistentStateComponent"),
        "com.intellij.projectService" to ("serviceImplementation" to "com.intellij.openapi.Disposable"),
        "com.intellij.notificationGroup" to null,
        "com.intellij.applicationConfigurable" to ("instance" to "com.intellij.openapi.options.Configurable"),
        "com.intellij.statusBarWidgetFactory" to ("implementation" to "com.intellij.openapi.wm.StatusBarWidgetFactory"),
        "com.intellij.consoleFilterProvider" to ("implementation" to "com.intellij.execution.filters.ConsoleFilterProvider"),
        "com.intellij.toolWindow" to ("factoryClass" to "com.intellij.openapi.wm.ToolWindowFactory"),
        "com.intellij.platform.lsp.serverSupportProvider" to ("implementation" to "com.intellij.platform.lsp.api.LspServerSupportProvider"),
        "Pythonid.runConfigurationExtension" to ("implementation" to "com.jetbrains.python.run.PythonRunConfigurationExtension"),
        "Pythonid.pythonCommandLineTargetEnvironmentProvider" to
            ("implementation" to "com.jetbrains.python.run.target.PythonCommandLineTargetEnvironmentProvider"),
        "com.redhat.devtools.lsp4ij.server" to ("factoryClass" to "com.redhat.devtools.lsp4ij.LanguageServerFactory"),
        "com.redhat.devtools.lsp4ij.languageMapping" to null,
        "com.redhat.devtools.lsp4ij.fileNamePatternMapping" to null,
        "dev.cublame.connector" to ("implementation" to "dev.cublame.ide.Connector"),
    )

    @Test
    fun `extensions name classes of their point's kind`() {
        val seen = mutableSetOf<String>()
        for ((file, descriptor) in descriptors) for (extensions in descriptor.elements("extensions")) {
            for (extension in extensions.children()) {
                val point = "${extensions.getAttribute("defaultExtensionNs")}.${extension.tagName}"
                assertTrue(point in points, "$file: $point")
                seen += point
                val icon = extension.getAttribute("icon")
                assertTrue(icon.isEmpty() || Files.isRegularFile(folder.parent.resolve(icon.removePrefix("/"))), "$file: $icon")
                points[point]?.let { (attribute, type) -> check(file, extension.getAttribute(attribute), type) }
            }
        }
        assertEquals(points.keys, seen)
    }

    @Test
    fun `actions and our own extension point name classes`() {
        val descriptor = descriptors.getValue("plugin.xml")
        val actions = descriptor.elements("action")
        assertTrue(actions.isNotEmpty())
        for (action in actions) check("plugin.xml", action.getAttribute("class"), "com.intellij.openapi.actionSystem.AnAction")
        for (point in descriptor.elements("extensionPoint")) assertTrue(load(point.getAttribute("interface")).isInterface)
    }

    @Test
    fun `optional parts lie beside the plugin's own descriptor`() {
        val named = descriptors.getValue("plugin.xml").elements("depends").mapNotNull { it.getAttribute("config-file").ifEmpty { null } }
        assertEquals(descriptors.keys - "plugin.xml", named.toSet())
    }

    @Test
    fun `the plugin works without either client`() {
        // What only an optional part may name would fail to load where that part is absent.
        val clients = listOf("com.intellij.platform.lsp", "com.redhat.devtools.lsp4ij", "org.eclipse.lsp4j")
        val sources = Files.list(folder.parent.parent.resolve("ide")).use { it.toList() }
        val users = sources.filter { file -> clients.any { Files.readString(file).contains("import $it") } }.map { it.fileName.toString() }
        assertEquals(listOf("Lsp4ij.kt", "PlatformLsp.kt"), users.sorted())
        val main = descriptors.getValue("plugin.xml").elements("extensions").map { it.getAttribute("defaultExtensionNs") }
        assertEquals(setOf("com.intellij", "Pythonid"), main.toSet())
        for (file in sources.filter { it.fileName.toString() !in users }) {
            for (name in listOf("PlatformLspProvider", "PlatformConnector", "Lsp4ijConnector", "Lsp4ijFactory")) {
                assertTrue(!Files.readString(file).contains(name), "$file names $name")
            }
        }
    }

    private fun check(file: String, name: String, type: String) {
        val found = load(name)
        assertTrue(load(type).isAssignableFrom(found), "$file: $name is no $type")
        assertTrue(!Modifier.isAbstract(found.modifiers), "$file: $name is abstract")
        assertTrue(found.declaredConstructors.any { Modifier.isPublic(it.modifiers) }, "$file: $name has no constructor for the platform")
    }

    private fun load(name: String): Class<*> = Class.forName(name, false, javaClass.classLoader)

    private fun parse(file: Path): Element = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file.toFile()).documentElement

    private fun Element.elements(name: String): List<Element> {
        val found = getElementsByTagName(name)
        return (0 until found.length).map { found.item(it) as Element }
    }

    private fun Element.children(): List<Element> = generateSequence(firstChild, Node::getNextSibling).filterIsInstance<Element>().toList()
}

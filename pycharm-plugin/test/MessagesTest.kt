package dev.cublame.ide

import dev.cublame.core.AgeUnit
import dev.cublame.core.Mode
import org.junit.Test
import java.nio.file.Files
import java.nio.file.Path
import java.text.MessageFormat
import java.util.Properties
import kotlin.io.path.extension
import kotlin.io.path.readText
import kotlin.test.assertEquals

/** The plugin's folder is the system property `plugin`. */
class MessagesTest {
    private val plugin = Path.of(System.getProperty("plugin"))
    private val english = read("CublameBundle.properties")
    private val chinese = read("CublameBundle_zh_CN.properties")

    @Test
    fun `both languages say the same things, with the same blanks`() {
        assertEquals(english.keys, chinese.keys)
        for ((key, text) in english) assertEquals(blanks(text), blanks(chinese.getValue(key)), key)
    }

    @Test
    fun `every word that the sources ask for is there, and no other`() {
        val literal = Regex("""(?:message|action)\("([a-z.]+)"""")
        val sources = Files.list(plugin.resolve("ide")).use { files -> files.filter { it.extension == "kt" }.map { it.readText() }.toList() }
        val asked = sources.flatMap { text -> literal.findAll(text).map { it.groupValues[1] } }.toSet()
        val modes = Mode.entries.flatMap { mode -> listOf("name", "benefit", "cost").map { "mode.${mode.word}.$it" } }
        val ages = AgeUnit.entries.map { "age.${it.name.lowercase()}" }
        val states = listOf("running", "succeeded", "failed", "interrupted").map { "run.$it" }
        val certainties = listOf("exact", "likely", "suspect", "unknown").map { "certainty.$it" }
        // The platform looks these up by the identifiers in plugin.xml.
        val xml = plugin.resolve("resources/META-INF/plugin.xml").readText()
        val actions = Regex("""<(action|group) id="([\w.]+)"""").findAll(xml).map { it.destructured }.flatMap { (kind, id) ->
            listOf("text", "description").map { "$kind.$id.$it" }
        }
        val expected = asked + modes + ages + states + certainties + actions + "toolwindow.stripe.cublame"
        // What is put together from two parts has a name that ends in a dot.
        assertEquals(expected.filterNot { it.endsWith(".") }.sorted(), english.keys.sorted())
    }

    private fun blanks(text: String) = MessageFormat(text).formatsByArgumentIndex.size

    private fun read(name: String): Map<String, String> {
        val properties = Properties().apply { Files.newBufferedReader(plugin.resolve("resources/messages/$name")).use(::load) }
        return properties.entries.associate { it.key.toString() to it.value.toString() }
    }
}

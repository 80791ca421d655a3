package dev.cublame.core

import org.junit.Test
import kotlin.test.assertEquals
import kotlin.test.assertNull

class LaunchTest {
    @Test
    fun `an env block is an object of texts`() {
        assertEquals(mapOf("A" to "1", "B" to ""), parseBlock("""{ "A": "1", "B": "" }"""))
        for (text in listOf("", "[]", "null", "{", """{ "A": 1 }""", """{ "A": null }""", "cublame: no")) assertNull(parseBlock(text), text)
    }

    @Test
    fun `a configuration's own variables are over those of the IDE`() {
        val inherited = mapOf("HOME" to "/home/dev", "A" to "theirs")
        val configuration = RunConfiguration("train", mapOf("A" to "own"))
        assertEquals(mapOf("HOME" to "/home/dev", "A" to "own"), configuration.environmentBefore(inherited))
        assertEquals(mapOf("A" to "own"), configuration.copy(inheritsEnvironment = false).environmentBefore(inherited))
    }

    @Test
    fun `the hook goes before the folders of the IDE, once`() {
        val launch = Launch(Mode.BLOCKING, mapOf("CUDA_LAUNCH_BLOCKING" to "1"), mapOf("PYTHONPATH" to "/hook"))
        fun check(theirs: String?, expected: String) {
            val before = if (theirs == null) mapOf("A" to "b") else mapOf("A" to "b", "PYTHONPATH" to theirs)
            val after = launch.appliedTo(before, ":")
            assertEquals(mapOf("A" to "b", "CUDA_LAUNCH_BLOCKING" to "1", "PYTHONPATH" to expected), after)
            assertEquals(after, launch.appliedTo(after, ":"))
        }
        check(null, "/hook")
        check("", "/hook")
        check("/proj:/helpers/pydev", "/hook:/proj:/helpers/pydev")
    }

    @Test
    fun `what is wanted becomes words of the command line`() {
        fun check(wanted: Wanted, vararg words: String) = assertEquals(listOf("configure", "pycharm") + words, configureWords(wanted))
        check(Wanted.Copies)
        check(Wanted.ForProgram("train.py"), "--program", "train.py")
        check(Wanted.ForTests("tests"), "--pytest", "tests")
        check(Wanted.Removal, "--remove")
    }

    @Test
    fun `path mappings are read as they are written`() {
        val mappings = listOf(PathMapping("/home/dev/proj", "/workspace"), PathMapping("C:\\proj", "/mnt/c = d"))
        assertEquals(mappings.take(1), parseMappings(writtenMappings(mappings.take(1)) + "\n\n"))
        assertEquals(emptyList(), parseMappings(" \n"))
        for (text in listOf("/home/dev/proj", "a = ", "a = b = c")) assertNull(parseMappings(text), text)
    }
}

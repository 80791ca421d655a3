package dev.cublame.core

import org.junit.Test
import kotlin.test.assertEquals
import kotlin.test.assertIs

class LocatorTest {
    private val around = Surroundings(
        trusted = true, windows = false, setting = "", plugin = "/opt/plugin",
        python = "/home/dev/proj/.venv/bin/python", path = "/usr/bin::bin:/usr/local/bin/:/usr/bin",
    )

    @Test
    fun `the plugin's own, then the environment's, then PATH`() {
        check(around, "/opt/plugin/bin/cublame", "/home/dev/proj/.venv/bin/cublame", "/usr/bin/cublame", "/usr/local/bin/cublame")
        check(around.copy(plugin = null, python = null, path = ""))
    }

    @Test
    fun `the user's word is the only one`() = check(around.copy(setting = "/home/dev/cublame"), "/home/dev/cublame")

    @Test
    fun `a project that is not trusted has no say`() {
        check(around.copy(trusted = false, setting = "/home/dev/cublame"), "/opt/plugin/bin/cublame")
        check(around.copy(trusted = false, plugin = null))
    }

    @Test
    fun `windows has names and separators of its own`() {
        val windows = Surroundings(true, true, "", null, """C:\proj\.venv\Scripts\python.exe""", """C:\bin\;bin;\bin""")
        check(windows, """C:\proj\.venv\Scripts\cublame.exe""", """C:\bin\cublame.exe""")
    }

    private fun check(around: Surroundings, vararg expected: String) = assertEquals(expected.toList(), candidates(around).map { it.path })

    @Test
    fun `the first that answers is taken, and the log says why`() {
        val answers = mapOf(
            "/opt/plugin/bin/cublame" to Answer.Printed("cublame 0.0.9\n"),
            "/usr/bin/cublame" to Answer.Printed("cublame 0.2.13 (beta)\n"),
        )
        val found = assertIs<Located.Found>(locate(around, answers::containsKey, answers::getValue))
        assertEquals(Version(0, 2, 13), found.version)
        assertEquals("the server is /usr/bin/cublame (version 0.2.13): it is on PATH", found.log)
    }

    @Test
    fun `what was there and could not be used is named with its reason`() {
        val answers = mapOf(
            "/opt/plugin/bin/cublame" to Answer.Printed("cublame 0.0.9\n"),
            "/usr/bin/cublame" to Answer.Printed("cuBLAS 12.8.0\n"),
            "/usr/local/bin/cublame" to Answer.Failed("it ended with exit code 1"),
        )
        val missing = assertIs<Located.Missing>(locate(around, answers::containsKey, answers::getValue))
        val refused = listOf(
            "/opt/plugin/bin/cublame: it is version 0.0.9, and at least 0.1.0 is needed",
            "/usr/bin/cublame: it does not say that it is cublame",
            "/usr/local/bin/cublame: it ended with exit code 1",
        )
        assertEquals(refused, missing.refused)
        assertEquals("no server was found; " + refused.joinToString("; "), missing.log)
        assertEquals("no server was found", locate(around, { false }, answers::getValue).log)
        val named = assertIs<Located.Missing>(locate(around.copy(setting = "/gone"), { false }, answers::getValue))
        assertEquals(listOf("/gone: there is no such file"), named.refused)
    }
}

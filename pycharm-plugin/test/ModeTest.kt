package dev.cublame.core

import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull

class ModeTest {
    @get:Rule
    val temporary = TemporaryFolder()

    private val folder: Path get() = temporary.root.toPath().resolve(".cublame")

    @Test
    fun `the configuration wins, then the workspace, then the setting, then what the user has turned on`() {
        val all = Wishes(mapOf("CUBLAME_MODE" to "guard"), Mode.CORE, Mode.OFF, mapOf("CUDA_LAUNCH_BLOCKING" to "1"))
        check(all, Mode.GUARD)
        check(all.copy(configuration = emptyMap()), Mode.CORE)
        check(all.copy(configuration = emptyMap(), workspace = null), Mode.OFF)
        check(all.copy(configuration = emptyMap(), workspace = null, setting = null), Mode.BLOCKING)
        check(Wishes(), Mode.TRACE)
    }

    @Test
    fun `a word that is no mode and a value that is not on are left out of account`() {
        check(Wishes(configuration = mapOf("CUBLAME_MODE" to "fast"), workspace = Mode.CORE), Mode.CORE)
        check(Wishes(inherited = mapOf("CUDA_LAUNCH_BLOCKING" to "1"), configuration = mapOf("CUDA_LAUNCH_BLOCKING" to "0")), Mode.TRACE)
    }

    private fun check(wishes: Wishes, expected: Mode) = assertEquals(expected, modeOfLaunch(wishes))

    @Test
    fun `what is written is read back, and the folder ignores itself`() {
        Mode.entries.forEach { mode ->
            writeMode(folder, mode)
            assertEquals(mode, readMode(folder))
        }
        val files = Files.list(folder).use { files -> files.map { it.fileName.toString() }.sorted().toList() }
        assertEquals(listOf(".gitignore", "mode"), files)
        assertEquals("*\n", Files.readString(folder.resolve(".gitignore")))
    }

    @Test
    fun `a user's own gitignore stays`() {
        Files.createDirectories(folder)
        Files.writeString(folder.resolve(".gitignore"), "runs\n")
        writeMode(folder, Mode.CORE)
        assertEquals("runs\n", Files.readString(folder.resolve(".gitignore")))
    }

    @Test
    fun `the first word of the file counts`() {
        Files.createDirectories(folder)
        val texts = mapOf("blocking" to Mode.BLOCKING, " core\n# ours\n" to Mode.CORE, "" to null, "fast" to null, "Trace" to null)
        for ((text, mode) in texts) {
            Files.writeString(folder.resolve("mode"), text)
            assertEquals(mode, readMode(folder), text)
        }
    }

    @Test
    fun `no link is followed`() {
        val elsewhere = temporary.newFolder("elsewhere").toPath()
        Files.writeString(elsewhere.resolve("mode"), "core\n")
        Files.createSymbolicLink(folder, elsewhere)
        assertNull(readMode(folder))
        assertFailsWith<IOException> { writeMode(folder, Mode.OFF) }
        Files.delete(folder)
        Files.createDirectories(folder)
        Files.createSymbolicLink(folder.resolve("mode"), elsewhere.resolve("mode"))
        assertNull(readMode(folder))
        writeMode(folder, Mode.OFF)
        assertEquals("core\n", Files.readString(elsewhere.resolve("mode")))
        assertEquals(Mode.OFF, readMode(folder))
    }

    @Test
    fun `the project's folder is found as the server finds it`() {
        fun check(expected: String, vararg there: String, variable: String? = null) {
            val start = Path.of("/home/dev/proj/train/deep")
            assertEquals(Path.of(expected), projectFolder(start, variable) { it.toString() in there })
        }
        check("/home/dev/proj/.cublame", "/home/dev/proj/.cublame", "/home/dev/proj/train/.git")
        for (mark in listOf(".vscode", ".idea", ".git", "pyproject.toml")) {
            check("/home/dev/proj/.cublame", "/home/dev/.git", "/home/dev/proj/$mark")
        }
        check("/home/dev/proj/train/deep/.cublame")
        check("/scratch/dev", "/home/dev/proj/.cublame", variable = "/scratch/dev")
        check("/home/dev/proj/train/deep/out", variable = "out")
    }
}

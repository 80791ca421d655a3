package dev.cublame.core

import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.TimeUnit

/** What a command of cublame's printed. */
data class Printed(val output: String, val notes: String, val exitCode: Int)

/** `cublame`, as a command that is run to its end. Nothing here may be called on the IDE's event thread. */
class Program(val path: String) {
    /** What it says when it is asked for its version. */
    fun version(): Answer = try {
        val printed = run(listOf("--version"), System.getenv(), seconds = VERSION_SECONDS)
        if (printed.exitCode == 0) Answer.Printed(printed.output) else Answer.Failed("it ended with exit code ${printed.exitCode}")
    } catch (failure: IOException) {
        Answer.Failed("it could not be run (${failure.message})")
    }

    /**
     * The variables of a mode for a process that would otherwise start with `environment`; `shared` leaves out what holds a
     * path of this machine.
     */
    @Throws(IOException::class)
    fun block(mode: Mode, environment: Map<String, String>, shared: Boolean = false): Map<String, String> {
        val words = listOf("env", "--mode", mode.word, "--format", "json") + if (shared) listOf("--shared") else emptyList()
        // A program that inherits nothing gets its hook from the user's cache all the same, and not from a folder of its own.
        val printed = run(words, System.getenv().filterKeys { it in OF_THE_USER } + environment)
        if (printed.exitCode != 0) throw IOException(printed.notes.trim().ifEmpty { "it ended with exit code ${printed.exitCode}" })
        return parseBlock(printed.output) ?: throw IOException("what it printed is no env block")
    }

    /** `cublame configure pycharm` in a project's folder. */
    @Throws(IOException::class)
    fun configure(project: Path, wanted: Wanted): Printed = run(configureWords(wanted), System.getenv(), folder = project)

    /** Runs it to its end, with both streams drained. */
    @Throws(IOException::class)
    private fun run(words: List<String>, environment: Map<String, String>, folder: Path? = null, seconds: Long = SECONDS): Printed {
        // The streams go through files: a reader of one pipe would wait while the other one is full.
        val output = Files.createTempFile("cublame", ".out")
        val notes = Files.createTempFile("cublame", ".err")
        try {
            val builder = ProcessBuilder(listOf(path) + words)
                .redirectInput(ProcessBuilder.Redirect.from(NOTHING))
                .redirectOutput(output.toFile())
                .redirectError(notes.toFile())
            folder?.let { builder.directory(it.toFile()) }
            builder.environment().apply {
                clear()
                putAll(environment)
            }
            val process = builder.start()
            if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor()
                throw IOException("it did not answer in $seconds seconds")
            }
            return Printed(Files.readString(output), Files.readString(notes), process.exitValue())
        } catch (interrupted: InterruptedException) {
            Thread.currentThread().interrupt()
            throw IOException("the wait for it was interrupted", interrupted)
        } finally {
            Files.deleteIfExists(output)
            Files.deleteIfExists(notes)
        }
    }
}

/** What tells where the user's cache is; no mode reads or sets it. */
private val OF_THE_USER = setOf("HOME", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")

private const val VERSION_SECONDS = 10L
private const val SECONDS = 30L
private val NOTHING = java.io.File(if (java.io.File.separatorChar == '\\') "NUL" else "/dev/null")

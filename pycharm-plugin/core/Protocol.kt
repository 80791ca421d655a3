package dev.cublame.core

/**
 * The server's own messages: server/src/lsp/editor.rs and commands.rs, verdicts as in server/core/src/verdict.rs.
 *
 * They are read by gson, which the platform's LSP client and LSP4IJ both use. It knows nothing of Kotlin's null safety, so
 * what the server may leave out or send as null is nullable, and every class has a constructor without arguments.
 */
const val RUNS = "cublame/runs"
const val REPORT = "cublame/report"
const val RUN_IN_TERMINAL = "cublame/runInTerminal"

/** `cublame/runs`: the runs of the workspace, newest first. */
data class RunsParams(val runs: List<Run> = emptyList())

/** `cublame/runInTerminal`: run this where the user sees it. */
data class RunInTerminalParams(val argv: List<String> = emptyList(), val cwd: String = "") {
    /** The words after `--`, which are the user's own command, each path by its last name. */
    val title: String get() = "cublame: " + argv.drop(argv.indexOf("--") + 1).joinToString(" ") { it.substringAfterLast('/') }
}

/** `cublame/report`: show this page of a run. */
data class ReportParams(val uri: String = "")

data class Run(
    val id: String = "",
    /** `running`, `succeeded`, `failed`, `interrupted`. */
    val state: String = "",
    val mode: String = "",
    val argv: List<String> = emptyList(),
    val cwd: String = "",
    val entry: String? = null,
    /** Unix seconds. */
    val started: Double = 0.0,
    val dismissed: Boolean = false,
    /** Absolute, or the id again for a log that was pasted and has no folder. */
    val folder: String = "",
    /** `supervised` or `adopted`. */
    val watch: String = "",
    /** The root cause first. */
    val verdicts: List<Verdict> = emptyList(),
)

data class Verdict(
    val kind: String = "",
    val summary: String = "",
    val place: Place? = null,
    val reported: Place? = null,
    /** `exact`, `likely`, `suspect`, `unknown`. */
    val certainty: String = "",
    val because: List<String> = emptyList(),
    val missing: List<String> = emptyList(),
    val rank: Int? = null,
    val collateral: List<Collateral> = emptyList(),
    val fatal: Boolean = true,
)

data class Place(
    /** As the evidence has it. */
    val file: String = "",
    /** Absolute on this machine, where it could be resolved. */
    val path: String? = null,
    /** From 1. */
    val line: Int = 0,
    /** From 1, in Unicode code points. */
    val column: Int? = null,
)

data class Collateral(val rank: Int? = null, val summary: String = "")

/** A command of `workspace/executeCommand` with its one argument. */
data class ServerCommand(val name: String, val argument: Map<String, Any>) {
    val arguments: List<Any> get() = if (argument.isEmpty()) emptyList() else listOf(argument)
}

/** The commands that this plugin gives. The editor itself sends those of code actions and lenses. */
object Commands {
    /** `folder` is the address of a workspace folder. */
    fun setMode(mode: Mode, folder: String? = null) =
        ServerCommand("cublame.setMode", mapOf("mode" to mode.word) + (folder?.let { mapOf("folder" to it) } ?: emptyMap()))

    fun explainText(text: String, blocking: Boolean = false) =
        ServerCommand("cublame.explainText", mapOf("text" to text, "blocking" to blocking))

    /** Without a run, the newest failure. */
    fun openReport(run: String? = null) = ServerCommand("cublame.openReport", ofRun(run))

    fun copyReport(run: String? = null) = ServerCommand("cublame.copyReport", ofRun(run))

    fun rerun(run: String, mode: Mode?) =
        ServerCommand("cublame.rerun", ofRun(run) + (mode?.let { mapOf("mode" to it.word) } ?: emptyMap()))

    fun stop(run: String) = ServerCommand("cublame.stop", ofRun(run))

    fun dismiss(run: String) = ServerCommand("cublame.dismiss", ofRun(run))

    fun delete(run: String) = ServerCommand("cublame.delete", ofRun(run))

    private fun ofRun(run: String?): Map<String, Any> = if (run == null) emptyMap() else mapOf("run" to run)
}

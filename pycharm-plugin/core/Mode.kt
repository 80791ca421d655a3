package dev.cublame.core

/** How CUDA failures are found. A mode is an env block, which `cublame env` computes. The best default comes first. */
enum class Mode {
    TRACE,
    BLOCKING,
    GUARD,
    CORE,
    SANITIZE,
    OFF;

    /** The word for it on the command line, in `.cublame/mode` and in CUBLAME_MODE. */
    val word: String = name.lowercase()

    /** The sanitizer needs words before the interpreter, which a run configuration has no place for. */
    val startsFromRunConfiguration: Boolean get() = this != SANITIZE

    companion object {
        fun of(word: String?): Mode? = entries.find { it.word == word }
    }
}

/** Everything that may say which mode a launch takes. */
data class Wishes(
    /** The variables of the run configuration itself. */
    val configuration: Map<String, String> = emptyMap(),
    /** `.cublame/mode`. */
    val workspace: Mode? = null,
    /** The mode of the settings page. */
    val setting: Mode? = null,
    /** What the program inherits from the IDE. */
    val inherited: Map<String, String> = emptyMap(),
)

/**
 * The order is that of `cublame run` (server/src/session/mode.rs), with the configuration in the place of `--mode`.
 * Whoever has set CUDA_LAUNCH_BLOCKING=1 wants exact lines and has paid for them: no other mode takes that away unasked.
 */
fun modeOfLaunch(wishes: Wishes): Mode {
    val own = wishes.inherited + wishes.configuration
    return Mode.of(wishes.configuration[MODE_VARIABLE])
        ?: wishes.workspace
        ?: wishes.setting
        ?: if (own[BLOCKING_VARIABLE] == "1") Mode.BLOCKING else Mode.TRACE
}

const val MODE_VARIABLE = "CUBLAME_MODE"
const val BLOCKING_VARIABLE = "CUDA_LAUNCH_BLOCKING"

package dev.cublame.core

import com.google.gson.JsonElement
import com.google.gson.JsonParseException
import com.google.gson.JsonParser
import java.io.IOException

/** What of a run configuration decides the environment of its program, whichever IDE class it comes from. */
data class RunConfiguration(
    val name: String,
    /** Its own variables. */
    val environment: Map<String, String>,
    /** "Include parent environment variables". */
    val inheritsEnvironment: Boolean = true,
) {
    /** What its program starts with before a mode's variables are added. */
    fun environmentBefore(inherited: Map<String, String>): Map<String, String> =
        (if (inheritsEnvironment) inherited else emptyMap()) + environment
}

/** What is added to one launch. */
data class Launch(
    val mode: Mode,
    /** Variables that replace what is there. */
    val variables: Map<String, String>,
    /**
     * Folders that go before those of a search path, by the variable's name. The IDE puts folders of its own into PYTHONPATH,
     * some of them known only once the target is, so that one is not replaced.
     */
    val firstFolders: Map<String, String>,
)

/** What a launch needs to know. */
data class LaunchRequest(
    val configuration: RunConfiguration,
    val wishes: Wishes,
    /** The interpreter is in a container or on another machine: no path of this machine means anything there. */
    val elsewhere: Boolean = false,
)

/** The additions of a mode, asked of cublame itself: one function computes them for every front end. */
@Throws(IOException::class)
fun launchOf(program: Program, request: LaunchRequest): Launch {
    val inherited = if (request.elsewhere) emptyMap() else request.wishes.inherited
    val wishes = request.wishes.copy(configuration = request.configuration.environment, inherited = inherited)
    val mode = modeOfLaunch(wishes)
    val before = request.configuration.environmentBefore(inherited)
    // Without PYTHONPATH, so that the answer's value is the hook's folder alone.
    val block = program.block(mode, before - PYTHON_PATH, shared = request.elsewhere)
    return Launch(mode, block - PYTHON_PATH, block.filterKeys { it == PYTHON_PATH })
}

/** The environment of the old launch path, where everything is known: `environment` is the whole of it. */
fun Launch.appliedTo(environment: Map<String, String>, separator: String): Map<String, String> =
    environment + variables + firstFolders.mapValues { (name, first) -> prepended(first, environment[name], separator) }

/** `first` before the folders of a search path, once. */
fun prepended(first: String, theirs: String?, separator: String): String {
    val rest = theirs.orEmpty().split(separator).filter { it.isNotEmpty() && it != first }
    return (listOf(first) + rest).joinToString(separator)
}

/** The variables that `cublame env --format json` printed; null where that is no such thing. */
fun parseBlock(output: String): Map<String, String>? {
    val parsed: JsonElement = try {
        JsonParser.parseString(output)
    } catch (_: JsonParseException) {
        return null
    }
    if (!parsed.isJsonObject) return null
    return parsed.asJsonObject.entrySet().associate { (name, value) ->
        if (!value.isJsonPrimitive || !value.asJsonPrimitive.isString) return null
        name to value.asString
    }
}

/** Which run configurations the user asked for. */
sealed interface Wanted {
    /** A copy of each of the user's own that runs Python. */
    data object Copies : Wanted

    /** New ones for a program. */
    data class ForProgram(val file: String) : Wanted

    /** New ones for the tests in a file or a folder. */
    data class ForTests(val path: String) : Wanted

    /** Away with all that cublame has written. */
    data object Removal : Wanted
}

/** `cublame configure pycharm`, which writes what may stand under version control. */
fun configureWords(wanted: Wanted): List<String> = listOf("configure", "pycharm") + when (wanted) {
    Wanted.Copies -> emptyList()
    is Wanted.ForProgram -> listOf("--program", wanted.file)
    is Wanted.ForTests -> listOf("--pytest", wanted.path)
    Wanted.Removal -> listOf("--remove")
}

const val PYTHON_PATH = "PYTHONPATH"

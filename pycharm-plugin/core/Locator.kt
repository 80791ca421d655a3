package dev.cublame.core

import java.nio.file.Files
import java.nio.file.Path

/** Everything that decides where the server's program may be. */
data class Surroundings(
    val trusted: Boolean,
    val windows: Boolean,
    /** The path of the settings page; empty when it is not set. */
    val setting: String,
    /** The plugin's own folder, where a release has a program for this system; null where that is unknown. */
    val plugin: String?,
    /** The project's interpreter; null when none is chosen. */
    val python: String?,
    /** The variable PATH. */
    val path: String,
)

data class Candidate(
    val path: String,
    /** Where it comes from, in words for the log. */
    val why: String,
    /** The user has named it: when it cannot be used, that is said aloud, and nothing else is taken in its place. */
    val named: Boolean = false,
)

/** What became of the search. */
sealed interface Located {
    /** One line for the log: which program, which version, why this one. */
    val log: String

    data class Found(val path: String, val version: Version, override val log: String) : Located

    /** `refused` are the candidates that were there and could not be used, each with its reason. */
    data class Missing(val refused: List<String>, override val log: String) : Located
}

/** What a program answered when it was asked for its version. */
sealed interface Answer {
    data class Printed(val output: String) : Answer
    data class Failed(val reason: String) : Answer
}

/**
 * The programs to try, best first. In a project that is not trusted that is the bundled one alone, since the interpreter's
 * folder is the project's word.
 */
fun candidates(around: Surroundings): List<Candidate> {
    val name = if (around.windows) "cublame.exe" else "cublame"
    val separator = if (around.windows) "\\" else "/"
    fun join(vararg parts: String) = parts.joinToString(separator)
    val bundled = around.plugin?.let { join(it, "bin", name) }
    if (!around.trusted) {
        return listOfNotNull(bundled?.let { Candidate(it, "it comes with the plugin, and the project is not trusted") })
    }
    val found = mutableListOf<Candidate>()
    if (around.setting.isNotEmpty()) return listOf(Candidate(around.setting, "the settings name it", named = true))
    bundled?.let { found += Candidate(it, "it comes with the plugin") }
    around.python?.let { python ->
        folderOf(python)?.let { found += Candidate(join(it, name), "it is in the environment of $python") }
    }
    // A relative folder would be looked up in the working directory, which the project may decide.
    around.path.split(if (around.windows) ';' else ':').filter(::isAbsolute).forEach { folder ->
        found += Candidate(join(folder.trimEnd('/', '\\'), name), "it is on PATH")
    }
    return found.distinctBy { it.path }
}

/** Asks the candidates in order and takes the first that can be used. */
fun locate(
    around: Surroundings,
    exists: (String) -> Boolean = { Files.isRegularFile(Path.of(it)) },
    ask: (String) -> Answer,
): Located {
    val refused = mutableListOf<String>()
    for (candidate in candidates(around)) {
        if (!exists(candidate.path)) {
            if (candidate.named) refused += "${candidate.path}: there is no such file"
            continue
        }
        when (val judged = judge(ask(candidate.path))) {
            is Judged.Usable -> {
                val log = "the server is ${candidate.path} (version ${judged.version}): ${candidate.why}"
                return Located.Found(candidate.path, judged.version, log)
            }
            is Judged.Unusable -> refused += "${candidate.path}: ${judged.reason}"
        }
    }
    val log = if (refused.isEmpty()) "no server was found" else "no server was found; ${refused.joinToString("; ")}"
    return Located.Missing(refused, log)
}

data class Version(val major: Int, val minor: Int, val patch: Int) : Comparable<Version> {
    override fun compareTo(other: Version) = compareValuesBy(this, other, Version::major, Version::minor, Version::patch)

    override fun toString() = "$major.$minor.$patch"

    companion object {
        /** The oldest server that speaks all that this plugin says. */
        val OLDEST = Version(0, 1, 0)

        /** Of what `cublame --version` prints, `cublame 0.1.0`; null where the program is another one. */
        fun ofOutput(output: String): Version? {
            val match = Regex("""^cublame (\d{1,6})\.(\d{1,6})\.(\d{1,6})""").find(output.trim()) ?: return null
            val (major, minor, patch) = match.destructured
            return Version(major.toInt(), minor.toInt(), patch.toInt())
        }
    }
}

private sealed interface Judged {
    data class Usable(val version: Version) : Judged
    data class Unusable(val reason: String) : Judged
}

private fun judge(answer: Answer): Judged = when (answer) {
    is Answer.Failed -> Judged.Unusable(answer.reason)
    is Answer.Printed -> {
        val version = Version.ofOutput(answer.output)
        when {
            version == null -> Judged.Unusable("it does not say that it is cublame")
            version < Version.OLDEST -> Judged.Unusable("it is version $version, and at least ${Version.OLDEST} is needed")
            else -> Judged.Usable(version)
        }
    }
}

private fun folderOf(program: String): String? {
    val end = program.lastIndexOfAny(charArrayOf('/', '\\'))
    return if (end > 0 && isAbsolute(program)) program.substring(0, end) else null
}

private fun isAbsolute(path: String) = path.startsWith("/") || Regex("""^[A-Za-z]:[\\/].*""").matches(path)

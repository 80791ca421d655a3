package dev.cublame.core

/** The settings page, as values. They are the user's own: nothing of a project can change which program is started. */
data class Settings(
    /** Empty: the plugin looks for it. */
    val serverPath: String = "",
    /** The mode where neither the run configuration nor `.cublame/mode` names one. */
    val mode: Mode? = null,
    /** Where files of a container or a cluster are on this machine. */
    val pathMappings: List<PathMapping> = emptyList(),
    /** The mode's variables are added to Python and pytest configurations as they start. */
    val addToRuns: Boolean = true,
)

/** As debugpy has them. */
data class PathMapping(val localRoot: String, val remoteRoot: String)

/** One mapping a line, `local = remote`, as the settings page shows them. */
fun parseMappings(text: String): List<PathMapping>? = text.lines().map { it.trim() }.filter { it.isNotEmpty() }.map { line ->
    val parts = line.split(" = ").map { it.trim() }
    if (parts.size != 2 || parts.any { it.isEmpty() }) return null
    PathMapping(parts[0], parts[1])
}

fun writtenMappings(mappings: List<PathMapping>): String = mappings.joinToString("\n") { "${it.localRoot} = ${it.remoteRoot}" }

/**
 * What the server reads of `initialize` (server/src/lsp/settings.rs and features.rs): the settings, and which of its own
 * messages this client understands.
 */
fun initializationOptions(settings: Settings, python: String?, locale: String): Map<String, Any> =
    mapOf("custom" to listOf(RUNS, REPORT, RUN_IN_TERMINAL), "settings" to settingsSection(settings, python, locale))

/** The section `cublame`, which the server also asks for by `workspace/configuration`. */
fun settingsSection(settings: Settings, python: String?, locale: String): Map<String, Any> = buildMap {
    settings.mode?.let { put("mode", it.word) }
    python?.let { put("python", it) }
    put("locale", locale)
    put("pathMappings", settings.pathMappings.map { mapOf("localRoot" to it.localRoot, "remoteRoot" to it.remoteRoot) })
}

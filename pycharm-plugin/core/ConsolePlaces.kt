package dev.cublame.core

/** A place that a line of the console names. `range` is what a click is for, as offsets into the line. */
data class ConsolePlace(
    val range: IntRange,
    val path: String,
    /** From 1. */
    val line: Int,
    /** From 1, in Unicode code points; null where the line has none. */
    val column: Int?,
)

/**
 * The place in a line such as `  --> model.py:8:13`, which is how a verdict names its culprit in a terminal
 * (server/src/render/terminal.rs), or `  ::: model.py:9:16` for a second file. Other lines, tracebacks among them, are the
 * IDE's own affair.
 */
fun consolePlace(line: String): ConsolePlace? {
    val match = VERDICT_LINE.find(line) ?: return null
    val (place, path, number, column) = match.groups.drop(1)
    // A number of ten digits and more is no line of a file.
    val lineNumber = number?.value?.toIntOrNull()?.takeIf { it > 0 } ?: return null
    return ConsolePlace(place!!.range, path!!.value, lineNumber, column?.value?.toIntOrNull())
}

/** The UTF-16 offset of a column of `text`, which an IDE's editor wants from 0. */
fun editorColumn(text: String, column: Int): Int {
    val points = text.codePointCount(0, text.length)
    return text.offsetByCodePoints(0, (column - 1).coerceIn(0, points))
}

private val VERDICT_LINE = Regex("""^\s*(?:-->|:::)\s((\S.*?):(\d+)(?::(\d+))?)\s*$""")

package dev.cublame.core

/** A row of the list of runs, without its words: the view has them in the user's language. */
data class RunRow(
    val run: Run,
    /** `train.py`, the module's name, or the command. */
    val name: String,
    val age: Age,
    /** The root cause; null for a run that did not fail, or whose failure nobody could read. */
    val failure: Verdict?,
    val verdicts: List<VerdictRow>,
)

data class VerdictRow(val verdict: Verdict, /** `model.py:8`; null where no line is known. */ val where: String?, val target: Target?)

/** Where a click goes. */
data class Target(val path: String, /** From 1. */ val line: Int)

enum class AgeUnit { NOW, MINUTES, HOURS, DAYS }

data class Age(val amount: Long, val unit: AgeUnit)

/** In the server's order, newest first; `now` is in Unix seconds. */
fun rows(runs: List<Run>, now: Double): List<RunRow> = runs.map { run ->
    val failure = run.verdicts.firstOrNull().takeIf { run.state == "failed" }
    RunRow(run, nameOf(run), age(now - run.started), failure, run.verdicts.map(::verdictRow))
}

/** How many programs fail: of each program, the newest run counts, unless somebody dismissed it or it was interrupted. */
fun standingFailures(runs: List<Run>): Int = runs
    .filter { it.state == "failed" || it.state == "succeeded" }
    .distinctBy { it.entry ?: it.argv.joinToString(" ") }
    .count { it.state == "failed" && !it.dismissed && it.verdicts.any(Verdict::fatal) }

private fun verdictRow(verdict: Verdict): VerdictRow {
    val shown = verdict.place ?: verdict.reported
    val target = listOfNotNull(verdict.place, verdict.reported).firstNotNullOfOrNull { place -> place.path?.let { Target(it, place.line) } }
    return VerdictRow(verdict, shown?.let { "${baseName(it.file)}:${it.line}" }, target)
}

private fun nameOf(run: Run): String {
    run.entry?.let { return baseName(it) }
    val module = run.argv.indexOf("-m")
    if (module >= 0 && module + 1 < run.argv.size) return run.argv[module + 1]
    return run.argv.joinToString(" ", transform = ::baseName).ifEmpty { run.id }
}

private fun baseName(path: String) = path.substringAfterLast('/').substringAfterLast('\\')

private fun age(seconds: Double): Age = when {
    seconds < 60 -> Age(0, AgeUnit.NOW)
    seconds < 3600 -> Age((seconds / 60).toLong(), AgeUnit.MINUTES)
    seconds < 86_400 -> Age((seconds / 3600).toLong(), AgeUnit.HOURS)
    else -> Age((seconds / 86_400).toLong(), AgeUnit.DAYS)
}

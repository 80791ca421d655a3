package dev.cublame.core

import org.junit.Test
import kotlin.test.assertEquals

class RunRowsTest {
    private val place = Place("model.py", "/home/dev/proj/model.py", 8)
    private val verdict = Verdict("device-assert", "index out of range", place, certainty = "exact")
    private val run = Run(
        "r1", "failed", "blocking", listOf("python", "train.py"),
        cwd = "/home/dev/proj", entry = "/home/dev/proj/train.py", started = 1000.0, verdicts = listOf(verdict),
    )

    @Test
    fun `a failed run shows its root cause and where it is`() {
        val row = rows(listOf(run), 1000.0 + 2 * 3600).single()
        assertEquals(listOf("train.py", Age(2, AgeUnit.HOURS), verdict), listOf(row.name, row.age, row.failure))
        assertEquals(VerdictRow(verdict, "model.py:8", Target("/home/dev/proj/model.py", 8)), row.verdicts.single())
    }

    @Test
    fun `a click goes to the first place that this machine has`() {
        val foreign = verdict.copy(place = place.copy(path = null), reported = Place("train.py", "/home/dev/proj/train.py", 17))
        val shown = rows(listOf(run.copy(verdicts = listOf(foreign))), 0.0).single().verdicts.single()
        assertEquals("model.py:8" to Target("/home/dev/proj/train.py", 17), shown.where to shown.target)
        val nowhere = rows(listOf(run.copy(verdicts = listOf(verdict.copy(place = null)))), 0.0).single().verdicts.single()
        assertEquals(null to null, nowhere.where to nowhere.target)
    }

    @Test
    fun `a run is called by its program, its module or its command`() {
        fun check(expected: String, run: Run) = assertEquals(expected, rows(listOf(run), 0.0).single().name)
        check("train", run.copy(entry = null, argv = listOf("/usr/bin/python", "-m", "train")))
        check("torchrun train.py", run.copy(entry = null, argv = listOf("/usr/bin/torchrun", "train.py")))
        check("r1", run.copy(entry = null, argv = emptyList()))
        check("train.py", run.copy(entry = """C:\proj\train.py"""))
    }

    @Test
    fun `ages`() {
        fun check(seconds: Double, amount: Long, unit: AgeUnit) =
            assertEquals(Age(amount, unit), rows(listOf(run), run.started + seconds).single().age)
        check(-5.0, 0, AgeUnit.NOW)
        check(59.0, 0, AgeUnit.NOW)
        check(150.0, 2, AgeUnit.MINUTES)
        check(7200.0, 2, AgeUnit.HOURS)
        check(200_000.0, 2, AgeUnit.DAYS)
    }

    @Test
    fun `a program fails if its newest finished run does`() {
        fun check(expected: Int, vararg runs: Run) = assertEquals(expected, standingFailures(runs.toList()))
        check(1, run)
        check(1, run.copy(id = "r2", state = "running"), run)
        check(1, run.copy(id = "r2", state = "interrupted"), run)
        check(0, run.copy(id = "r2", state = "succeeded"), run)
        check(0, run.copy(dismissed = true))
        check(0, run.copy(verdicts = emptyList()))
        check(2, run, run.copy(entry = "/home/dev/proj/eval.py"))
    }
}

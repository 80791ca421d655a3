package dev.cublame.core

import org.junit.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull

class ConsolePlacesTest {
    @Test
    fun `the culprit's line is a place`() {
        check("  --> embedding_oob.py:8:13\n", "embedding_oob.py", 8, 13)
        check("  --> /home/dev/my proj/a:1/model.py:120:7", "/home/dev/my proj/a:1/model.py", 120, 7)
        check("   ::: /home/dev/proj/训练.py:9", "/home/dev/proj/训练.py", 9, null)
        check("""  --> C:\proj\train.py:3:1""", """C:\proj\train.py""", 3, 1)
    }

    @Test
    fun `other lines are not`() {
        val others = listOf(
            "", "-->", "  --> the end", "  --> train.py", " 8 |         x = self.emb(tok)",
            """  File "/home/dev/proj/train.py", line 8, in forward""", "loss --> train.py:8:13", "  --> train.py:0:1",
            "  --> train.py:99999999999:1", "error[device-assert]: index out of range",
        )
        for (line in others) assertNull(consolePlace(line), line)
    }

    @Test
    fun `a column of code points becomes an offset of the editor`() {
        val line = "x = \"😀\" + emb(tok)"
        assertEquals(line.indexOf("emb"), editorColumn(line, line.codePointCount(0, line.indexOf("emb")) + 1))
        assertEquals(0, editorColumn(line, 0))
        assertEquals(line.length, editorColumn(line, 500))
    }

    private fun check(line: String, path: String, number: Int, column: Int?) {
        val place = assertNotNull(consolePlace(line), line)
        assertEquals(listOf(path, number, column), listOf(place.path, place.line, place.column))
        assertEquals(listOfNotNull(path, number, column).joinToString(":"), line.substring(place.range))
    }
}

package dev.cublame.core

import com.google.gson.Gson
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import org.junit.rules.Timeout
import java.io.DataInputStream
import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertTrue

/** The real program, named by the system property `cublame`. */
class ServerTest {
    /** A server that says nothing is a failure, not a wait for ever. */
    @get:Rule
    val limit: Timeout = Timeout.seconds(60)

    @get:Rule
    val temporary = TemporaryFolder()

    private val program = Program(System.getProperty("cublame"))
    private val project: Path get() = temporary.root.toPath().toRealPath()

    @Test
    fun `it is found and says its version`() {
        val around = Surroundings(true, false, program.path, null, null, "")
        assertIs<Located.Found>(locate(around) { Program(it).version() })
        assertIs<Answer.Failed>(Program("/home/dev/gone").version())
        val shell = Surroundings(true, false, "/bin/false", null, null, "")
        assertIs<Located.Missing>(locate(shell) { Program(it).version() })
    }

    @Test
    fun `every mode has a block, and the shared half holds no path`() {
        for (mode in Mode.entries) {
            val request = LaunchRequest(RunConfiguration("train", mapOf("CUBLAME_MODE" to mode.word)), Wishes(inherited = System.getenv()))
            val launch = launchOf(program, request)
            assertEquals(mode.word, launch.variables["CUBLAME_MODE"])
            assertEquals(if (mode == Mode.BLOCKING) "1" else null, launch.variables["CUDA_LAUNCH_BLOCKING"])
            assertTrue(Files.isRegularFile(Path.of(launch.firstFolders.getValue("PYTHONPATH"), "sitecustomize.py")))
            val elsewhere = launchOf(program, request.copy(elsewhere = true))
            assertEquals(emptyMap(), elsewhere.firstFolders)
            assertTrue(elsewhere.variables.keys.all { it in setOf("CUBLAME_MODE", "CUDA_LAUNCH_BLOCKING") }, "${elsewhere.variables}")
        }
    }

    @Test
    fun `a program that inherits nothing has the same hook`() {
        val request = LaunchRequest(RunConfiguration("train", emptyMap()), Wishes(workspace = Mode.BLOCKING, inherited = System.getenv()))
        val alone = request.copy(configuration = RunConfiguration("train", emptyMap(), inheritsEnvironment = false))
        assertEquals(launchOf(program, request).firstFolders, launchOf(program, alone).firstFolders)
    }

    @Test
    fun `what is set on this machine says nothing of another one`() {
        val here = LaunchRequest(RunConfiguration("train", emptyMap()), Wishes(inherited = mapOf("CUDA_LAUNCH_BLOCKING" to "1")))
        assertEquals(Mode.BLOCKING, launchOf(program, here).mode)
        assertEquals(Mode.TRACE, launchOf(program, here.copy(elsewhere = true)).mode)
    }

    @Test
    fun `a failure is said in the program's own words`() {
        val failure = assertFailsWith<IOException> { Program("/bin/ls").block(Mode.TRACE, emptyMap()) }
        assertTrue(failure.message!!.contains("ls"), failure.message)
    }

    @Test
    fun `configurations are written into the project and taken away`() {
        Files.writeString(project.resolve("train.py"), "print(1)\n")
        assertEquals(0, program.configure(project, Wanted.ForProgram("train.py")).exitCode)
        val written = Files.list(project.resolve(".run")).use { it.toList() }
        assertTrue(written.isNotEmpty() && written.all { Files.readString(it).contains("CUBLAME_MODE") }, "$written")
        assertEquals(0, program.configure(project, Wanted.Removal).exitCode)
        assertTrue(written.none { Files.exists(it) })
    }

    @Test
    fun `the server has the commands, keeps the mode and sends its runs`() {
        Files.writeString(project.resolve("train.py"), "print('run by its own words')\n")
        Files.writeString(project.resolve("model.py"), "import torch\n\ndef forward(x):\n    return x.sum().item()\n\nforward(None)\n")
        Conversation(program.path, project).use { server ->
            val options = initializationOptions(Settings(), null, "en")
            val offered = server.initialize(options)
            val ours = with(Commands) {
                listOf(setMode(Mode.CORE), explainText(""), openReport(), copyReport(), rerun("r", null), stop("r"), dismiss("r"), delete("r"))
            }
            assertEquals(emptyList(), ours.map { it.name } - offered.toSet())

            server.execute(Commands.setMode(Mode.GUARD, project.toUri().toString().trimEnd('/')))
            server.notified("window/showMessage")
            assertEquals(Mode.GUARD, readMode(projectFolder(project)))

            server.execute(Commands.explainText(LOG.replace("PROJECT", project.toString()), blocking = true))
            val runs = generateSequence { Gson().fromJson(server.notified(RUNS), RunsParams::class.java) }.first { it.runs.isNotEmpty() }
            val row = rows(runs.runs, System.currentTimeMillis() / 1000.0).single()
            assertEquals("failed", row.run.state)
            assertEquals("device-assert", row.failure?.kind)
            assertEquals(Target(project.resolve("model.py").toString(), 4), row.verdicts.first().target)

            server.execute(ServerCommand("cublame.run", mapOf("uri" to project.resolve("train.py").toUri().toString())))
            val run = Gson().fromJson(server.notified(RUN_IN_TERMINAL), RunInTerminalParams::class.java)
            assertEquals("cublame: python3 train.py", run.title.replace(Regex("python[0-9.]*"), "python3"))
            val console = ProcessBuilder(run.argv).directory(java.io.File(run.cwd)).redirectErrorStream(true).start()
            assertEquals("run by its own words", console.inputStream.reader().readText().trim())
            assertEquals(0, console.waitFor())

            // A log that was pasted has no folder of its own: its report goes to the user's, which any run creates.
            Files.createDirectories(project.resolve("state/cublame"))
            server.execute(Commands.openReport(row.run.id))
            val report = Gson().fromJson(server.notified(REPORT), ReportParams::class.java)
            // The page escapes what it says, and begins its heading with a capital.
            val page = Files.readString(Path.of(java.net.URI(report.uri))).replace("&#39;", "'").replace("&#x27;", "'")
            assertTrue(page.contains(row.failure!!.summary, ignoreCase = true))
        }
    }
}

private val LOG = """
    |Traceback (most recent call last):
    |  File "PROJECT/model.py", line 6, in <module>
    |    forward(None)
    |  File "PROJECT/model.py", line 4, in forward
    |    return x.sum().item()
    |torch.AcceleratorError: CUDA error: device-side assert triggered
    |""".trimMargin()

/** One language server and the messages of the base protocol: a Content-Length header, an empty line, JSON. */
private class Conversation(program: String, private val project: Path) : AutoCloseable {
    private val process = ProcessBuilder(program, "lsp").directory(project.toFile()).redirectError(ProcessBuilder.Redirect.DISCARD)
        .apply { environment()["XDG_STATE_HOME"] = project.resolve("state").toString() }.start()
    private val input = DataInputStream(process.inputStream.buffered())
    private val kept = ArrayDeque<JsonObject>()
    private var last = 0

    fun initialize(options: Map<String, Any>): List<String> {
        val folder = mapOf("uri" to project.toUri().toString().trimEnd('/'), "name" to "proj")
        val params = mapOf(
            "processId" to null,
            "capabilities" to emptyMap<String, Any>(),
            "initializationOptions" to options,
            "workspaceFolders" to listOf(folder),
        )
        val capabilities = request("initialize", params).getAsJsonObject("result").getAsJsonObject("capabilities")
        send(mapOf("method" to "initialized", "params" to emptyMap<String, Any>()))
        return capabilities.getAsJsonObject("executeCommandProvider").getAsJsonArray("commands").map { it.asString }
    }

    fun execute(command: ServerCommand) {
        val answer = request("workspace/executeCommand", mapOf("command" to command.name, "arguments" to command.arguments))
        check(!answer.has("error")) { answer }
    }

    /** The parameters of the next notification of this name; what comes in between is kept for later. */
    fun notified(method: String): JsonObject {
        fun named(message: JsonObject) = message.get("method")?.asString == method
        val message = kept.firstOrNull(::named)?.also(kept::remove) ?: generateSequence(::read).first { named(it) || !kept.add(it) }
        return message.getAsJsonObject("params")
    }

    private fun request(method: String, params: Map<String, Any?>): JsonObject {
        val id = ++last
        send(mapOf("id" to id, "method" to method, "params" to params))
        return generateSequence(::read).first { (it.has("id") && !it.has("method") && it.get("id").asInt == id) || !kept.add(it) }
    }

    private fun send(message: Map<String, Any?>) {
        val body = Gson().newBuilder().serializeNulls().create().toJson(mapOf("jsonrpc" to "2.0") + message).encodeToByteArray()
        process.outputStream.write("Content-Length: ${body.size}\r\n\r\n".encodeToByteArray() + body)
        process.outputStream.flush()
    }

    private fun read(): JsonObject {
        var length = 0
        while (true) {
            val header = generateSequence { input.readByte().toInt().toChar() }.takeWhile { it != '\n' }.joinToString("").trim()
            if (header.isEmpty()) break
            if (header.startsWith("Content-Length:")) length = header.substringAfter(':').trim().toInt()
        }
        return JsonParser.parseString(ByteArray(length).also(input::readFully).decodeToString()).asJsonObject
    }

    override fun close() {
        process.outputStream.close()
        if (!process.waitFor(20, TimeUnit.SECONDS)) process.destroyForcibly()
    }
}

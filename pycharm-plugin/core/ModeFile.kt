package dev.cublame.core

import java.io.IOException
import java.nio.channels.Channels
import java.nio.file.FileAlreadyExistsException
import java.nio.file.Files
import java.nio.file.LinkOption
import java.nio.file.Path
import java.nio.file.StandardCopyOption
import java.nio.file.StandardOpenOption

/**
 * The folder of a project's runs and of its mode (server/src/session/place.rs): in the nearest ancestor that has one, else in
 * the nearest that looks like a project's root, else in `start`.
 */
fun projectFolder(start: Path, cublameDir: String? = null, exists: (Path) -> Boolean = { Files.exists(it) }): Path {
    if (!cublameDir.isNullOrEmpty()) return start.resolve(cublameDir)
    val ancestors = generateSequence(start) { it.parent }.toList()
    fun nearest(names: List<String>) = ancestors.find { folder -> names.any { exists(folder.resolve(it)) } }
    return (nearest(listOf(FOLDER)) ?: nearest(ROOT_MARKS) ?: start).resolve(FOLDER)
}

/** The word in `.cublame/mode`; null where nobody has chosen one, or where it is no mode. No link is followed. */
fun readMode(folder: Path): Mode? {
    if (Files.isSymbolicLink(folder)) return null
    val file = folder.resolve(MODE_FILE)
    return try {
        // The type is asked first: opening a named pipe would wait for somebody to write to it.
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) return null
        val bytes = Files.newByteChannel(file, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS).use {
            Channels.newInputStream(it).readNBytes(LONGEST_FILE)
        }
        Mode.of(bytes.decodeToString().trim().split(Regex("\\s+")).first())
    } catch (_: IOException) {
        null
    }
}

/**
 * Writes the mode for every front end, as `cublame.setMode` of the server does.
 * The folder is created where it is missing, and ignores itself in git.
 */
@Throws(IOException::class)
fun writeMode(folder: Path, mode: Mode) {
    if (Files.isSymbolicLink(folder)) throw IOException("$folder is a symbolic link")
    Files.createDirectories(folder)
    if (folder.fileName.toString() == FOLDER) ignoreInGit(folder)
    val aside = Files.createTempFile(folder, "mode", ".new")
    try {
        Files.writeString(aside, mode.word + "\n")
        Files.move(aside, folder.resolve(MODE_FILE), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    } finally {
        Files.deleteIfExists(aside)
    }
}

private fun ignoreInGit(folder: Path) {
    try {
        Files.writeString(folder.resolve(".gitignore"), "*\n", StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
    } catch (_: FileAlreadyExistsException) {
        // Whatever stands there is the user's, or ours from before.
    }
}

private const val FOLDER = ".cublame"
private val ROOT_MARKS = listOf(".vscode", ".idea", ".git", "pyproject.toml")
private const val MODE_FILE = "mode"
private const val LONGEST_FILE = 4096

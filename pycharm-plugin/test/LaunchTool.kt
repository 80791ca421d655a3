package dev.cublame.core

import com.google.gson.Gson
import java.nio.file.Path

/**
 * Prints, as JSON, the environment with which the plugin would let a configuration start. usage: LaunchToolKt CUBLAME PROJECT,
 * with what PyCharm itself would start it with, and the configuration's own variables, as `{"before": {}, "own": {}}` on stdin.
 */
fun main(arguments: Array<String>) {
    val (cublame, project) = arguments
    val given = Gson().fromJson(System.`in`.reader(), Given::class.java)
    val wishes = Wishes(workspace = readMode(projectFolder(Path.of(project))), inherited = given.before - given.own.keys)
    val launch = launchOf(Program(cublame), LaunchRequest(RunConfiguration("train", given.own), wishes))
    println(Gson().toJson(launch.appliedTo(given.before, java.io.File.pathSeparator)))
}

private class Given(val before: Map<String, String> = emptyMap(), val own: Map<String, String> = emptyMap())

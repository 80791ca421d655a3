plugins {
    // Finds the JDK that the build asks for where none is installed.
    id("org.gradle.toolchains.foojay-resolver-convention") version "1.0.0"
}

rootProject.name = "cublame-pycharm"

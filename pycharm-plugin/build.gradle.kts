import org.jetbrains.intellij.platform.gradle.IntelliJPlatformType
import org.jetbrains.intellij.platform.gradle.tasks.VerifyPluginTask.FailureLevel
import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    kotlin("jvm") version "2.3.21"
    id("org.jetbrains.intellij.platform") version "2.19.0"
}

group = "dev.cublame"
version = providers.gradleProperty("pluginVersion").get()

repositories {
    mavenCentral()
    intellijPlatform { defaultRepositories() }
}

dependencies {
    intellijPlatform {
        pycharm(providers.gradleProperty("platformVersion"))
        bundledPlugin("PythonCore")
        plugin("com.redhat.devtools.lsp4ij", providers.gradleProperty("lsp4ijVersion").get())
        pluginVerifier()
        zipSigner()
    }
    testImplementation(kotlin("test-junit"))
    testImplementation("junit:junit:4.13.2")
}

sourceSets {
    main {
        // `stubs` is not here: it stands for the platform only where the platform is not.
        kotlin.setSrcDirs(listOf("core", "ide"))
        resources.setSrcDirs(listOf("resources"))
    }
    test {
        kotlin.setSrcDirs(listOf("test"))
        java.setSrcDirs(emptyList<String>())
    }
}

kotlin {
    // 2025.2 runs on Java 21, and so do the class files of every later platform.
    jvmToolchain(21)
    compilerOptions {
        jvmTarget = JvmTarget.JVM_21
        // The standard library of 2025.2 is that of Kotlin 2.1.
        apiVersion = KotlinVersion.KOTLIN_2_1
        languageVersion = KotlinVersion.KOTLIN_2_1
    }
}

intellijPlatform {
    pluginConfiguration {
        id = "dev.cublame"
        name = "cublame"
        version = project.version.toString()
        ideaVersion {
            sinceBuild = providers.gradleProperty("sinceBuild")
            // Open-ended: the verifier says where it ends.
            untilBuild = provider { null }
        }
    }
    pluginVerification {
        ides {
            create(IntelliJPlatformType.PyCharm, providers.gradleProperty("platformVersion").get())
            recommended()
        }
        // The renamed language server interfaces are deprecated on purpose, and the environment provider of Python's launch
        // path is internal: the plugins EnvFile, mise and mirrord use it too, since there is no other way in.
        failureLevel = listOf(FailureLevel.COMPATIBILITY_PROBLEMS, FailureLevel.INVALID_PLUGIN, FailureLevel.MISSING_DEPENDENCIES)
    }
    signing {
        certificateChain = providers.environmentVariable("CERTIFICATE_CHAIN")
        privateKey = providers.environmentVariable("PRIVATE_KEY")
        password = providers.environmentVariable("PRIVATE_KEY_PASSWORD")
    }
    publishing {
        token = providers.environmentVariable("PUBLISH_TOKEN")
    }
}

tasks {
    wrapper { gradleVersion = "9.5.0" }

    // The program for this system goes beside the plugin's jars, where the locator looks first.
    prepareSandbox {
        providers.environmentVariable("CUBLAME_BINARY").orNull?.let { binary ->
            from(binary) { into("${intellijPlatform.projectName.get()}/bin") }
        }
    }

    test {
        systemProperty("plugin", projectDir.path)
        systemProperty("cublame", providers.environmentVariable("CUBLAME_BINARY").getOrElse(""))
    }
}

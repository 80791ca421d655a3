import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.jetbrains.kotlin.cli.common.ExitCode;
import org.jetbrains.kotlin.cli.jvm.K2JVMCompiler;

/**
 * Compiles the plugin's parts one after the other, each against what it may see and nothing else; one JVM for all of them,
 * since the compiler takes longer to warm up than to work. usage: Build PLUGIN OUT KOTLIN_LIB JARS
 */
class Build {
    private final Path plugin, out;
    private final String stdlib, platform, jars;
    private int passed, failed;

    private Build(String[] arguments) {
        plugin = Path.of(arguments[0]);
        out = Path.of(arguments[1]);
        stdlib = arguments[2] + "/kotlin-stdlib.jar";
        platform = arguments[2] + "/kotlin-compiler.jar" + File.pathSeparator + arguments[2] + "/kotlinx-coroutines-core-jvm.jar";
        jars = arguments[3];
    }

    public static void main(String[] arguments) throws IOException {
        Build build = new Build(arguments);
        build.check("core compiles without any IDE class in sight", build.kotlin("core", build.plugin.resolve("core"), build.jars));
        String real = join(build.platform, build.jars);
        // The Kotlin stubs name the Java ones and the other way round: Kotlin reads Java's sources, Java then Kotlin's classes.
        boolean stubs = build.kotlin("stubs", build.plugin.resolve("stubs"), real)
            && build.java("stubs", build.plugin.resolve("stubs"), join(real, build.out("stubs"), build.stdlib));
        build.check("the stubs compile against the real platform core", stubs);
        String ide = join(build.out("core"), build.out("stubs"), real);
        build.check("ide compiles against signatures", build.kotlin("ide", build.plugin.resolve("ide"), ide));
        build.check("the tests compile", build.kotlin("test", build.plugin.resolve("test"), join(build.out("ide"), ide)));
        System.out.println(build.passed + " passed, " + build.failed + " failed");
        System.exit(build.failed == 0 ? 0 : 1);
    }

    private void check(String name, boolean fine) {
        System.out.println((fine ? "ok      " : "FAILED  ") + name);
        if (fine) passed++; else failed++;
    }

    private boolean kotlin(String part, Path sources, String classpath) {
        ExitCode code = new K2JVMCompiler().exec(System.err,
            "-no-stdlib", "-no-reflect", "-jvm-target", "17", "-Werror", "-Wextra",
            "-module-name", "cublame-" + part, "-cp", join(stdlib, classpath), "-d", out(part), sources.toString());
        return code == ExitCode.OK;
    }

    private boolean java(String part, Path sources, String classpath) throws IOException {
        List<String> words = new ArrayList<>(List.of("--release", "17", "-proc:none", "-nowarn", "-cp", classpath, "-d", out(part)));
        try (Stream<Path> files = Files.walk(sources)) {
            files.map(Path::toString).filter(file -> file.endsWith(".java")).forEach(words::add);
        }
        return ToolProvider.getSystemJavaCompiler().run(null, System.err, System.err, words.toArray(String[]::new)) == 0;
    }

    private String out(String part) {
        return out.resolve(part).toString();
    }

    private static String join(String... parts) {
        return String.join(File.pathSeparator, Arrays.asList(parts));
    }
}

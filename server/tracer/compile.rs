// Builds the tracer with the compiler alone, without cargo: it has no dependency but the journal, which has none.
// Included by the build script of the server, which embeds the result, and by the tests.

/// Compiles the journal and the tracer from `crates` (the folder `server`) into `out`: the path of the shared library.
/// `target` is a target triple. The error is what the compiler said.
fn compile_tracer(
    rustc: &std::path::Path,
    crates: &std::path::Path,
    out: &std::path::Path,
    target: &str,
    more: &[String],
) -> Result<std::path::PathBuf, String> {
    let compile = |name: &str, kind: &str, source: &str, file: &str, more: &[String]| {
        let path = out.join(file);
        let output = std::process::Command::new(rustc)
            .args(["--edition=2024", "--crate-name", name, "--crate-type", kind, "--target", target])
            // The library lives in other people's processes: fast on the way of a launch, small, unwinding to stop itself.
            .args(["-Copt-level=3", "-Ccodegen-units=1", "-Cpanic=unwind", "-Cstrip=symbols", "-Cembed-bitcode=yes"])
            .args(more)
            .arg("-o")
            .arg(&path)
            .arg(crates.join(source))
            .output()
            .map_err(|error| format!("the compiler {} did not start: {error}", rustc.display()))?;
        if output.status.success() {
            Ok(path)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    };
    let journal = compile("cublame_journal", "rlib", "journal/src/lib.rs", "libcublame_journal.rlib", &[])?;
    let mut with_journal = vec!["--extern".to_owned(), format!("cublame_journal={}", journal.display()), "-Clto=fat".to_owned()];
    with_journal.extend_from_slice(more);
    compile("cublame_tracer", "cdylib", "tracer/src/lib.rs", "libcublame_tracer.so", &with_journal)
}

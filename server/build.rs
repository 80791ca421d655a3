//! Builds the tracer, so that the binary carries it. It is compiled with the compiler alone and not by a second cargo: it
//! has no dependencies, and a cargo inside a build waits for locks and downloads.

use std::path::{Path, PathBuf};

include!("tracer/compile.rs");

fn main() -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    for source in ["tracer/src", "tracer/compile.rs", "journal/src"] {
        println!("cargo:rerun-if-changed={source}");
    }
    let out = PathBuf::from(variable("OUT_DIR")?);
    let library = out.join("libcublame_tracer.so");
    let is_traceable = variable("CARGO_CFG_TARGET_OS")? == "linux"
        && variable("CARGO_CFG_TARGET_ENV")? == "gnu"
        && ["x86_64", "aarch64"].contains(&variable("CARGO_CFG_TARGET_ARCH")?.as_str());
    if !is_traceable {
        // Elsewhere the binary carries an empty library and says that tracing is for Linux with glibc.
        return std::fs::write(&library, b"").map_err(|error| error.to_string());
    }
    let linker = std::env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let more: Vec<String> = linker.into_iter().collect();
    let crates = Path::new(&variable("CARGO_MANIFEST_DIR")?).to_owned();
    compile_tracer(Path::new(&variable("RUSTC")?), &crates, &out, &variable("TARGET")?, &more).map(|_| ())
}

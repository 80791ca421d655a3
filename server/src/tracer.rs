//! The tracer's library, which the binary carries: written into the user's cache, to be preloaded into a traced program.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::os::embedded::{Embedded, has_colon};
use crate::os::files;

/// Writes the library where it is not there yet, and returns its path for LD_PRELOAD.
pub fn install() -> Result<PathBuf> {
    if LIBRARY.is_empty() {
        return Err(Error::environment("the launch journal exists on Linux with glibc only"));
    }
    let folder = TRACER.install().map_err(|failure| {
        Error::environment("the tracer's library cannot be written")
            .because(failure)
            .hint("set XDG_CACHE_HOME or TMPDIR to a folder of your own from which programs may be loaded")
    })?;
    Ok(folder.join(FILE))
}

const FILE: &str = "libcublame_tracer.so";
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libcublame_tracer.so"));

const TRACER: Embedded = Embedded { name: "tracer", files: &[(FILE, LIBRARY)], others: &[], refuse: cannot_be_loaded };

/// The loader maps the library for execution, which a file system can forbid.
fn cannot_be_loaded(folder: &Path) -> Option<&'static str> {
    let holds_blank = folder.as_os_str().as_encoded_bytes().contains(&b' ');
    has_colon(folder)
        .or_else(|| holds_blank.then_some("has a blank, which separates the libraries to be preloaded"))
        .or_else(|| {
            files::forbids_execution(folder).then_some("is on a file system from which nothing may be executed")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_carried_and_written_whole() {
        assert!(LIBRARY.starts_with(b"\x7fELF"));
        let cache = tempfile::tempdir().unwrap();
        let folder = TRACER.install_in(cache.path()).unwrap();
        assert_eq!(std::fs::read(folder.join(FILE)).unwrap(), LIBRARY);
        assert!(TRACER.install_in(&cache.path().join("a b")).is_err());
    }
}

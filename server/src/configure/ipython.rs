//! The extension of every notebook: a startup file of IPython's that loads it, and the package beside it for kernels whose
//! interpreter has none installed.

use std::path::{Path, PathBuf};

use super::Plan;
use super::files::Change;
use crate::error::{Error, Result};

/// The files that load the extension in each kernel of this user; taken away where it is not `wanted`.
pub fn plan(ipython: &Path, program: &Path, wanted: bool) -> Result<Plan> {
    let (ipython, program) = (word(ipython)?, word(program)?);
    let package = format!("{ipython}/cublame");
    let startup = STARTUP.replace("PROGRAM", &quoted(program)).replace("PACKAGE", &quoted(&package));
    let files = PACKAGE.iter().map(|(name, text)| (format!("{package}/cublame/{name}"), (*text).to_owned()));
    let all = files.chain([(format!("{ipython}/profile_default/startup/{NAME}"), startup)]);
    let changes = all.map(|(path, text)| Ok(Change { after: wanted.then_some(text), ..Change::of(path.into())? }));
    Ok(changes.collect::<Result<Vec<_>>>()?.into())
}

/// Where IPython keeps its profiles (`IPython.paths.get_ipython_dir`).
pub fn folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let chosen = variable("IPYTHONDIR").filter(absolute);
    chosen.or_else(|| Some(variable("HOME").filter(absolute)?.join(".ipython"))).ok_or_else(|| {
        Error::environment("the folder of IPython's profiles is not known")
            .hint("set IPYTHONDIR, or HOME, to an absolute path")
    })
}

fn word(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        Error::environment(format!("{} is not Unicode, so Python cannot be told of it", path.display()))
            .hint("set IPYTHONDIR to another folder")
    })
}

/// A JSON string is a Python string as well.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// IPython runs these files in the order of their names.
const NAME: &str = "90-cublame.py";

const STARTUP: &str = r#"# Written by `cublame notebook enable`; `cublame notebook enable --disable` takes it away.


def _cublame():
    import os
    import sys

    os.environ.setdefault("CUBLAME", PROGRAM)
    # Last, so that an installed package goes first; and only for the import.
    sys.path.append(PACKAGE)
    try:
        get_ipython().extension_manager.load_extension("cublame")
    except Exception:
        pass
    finally:
        sys.path.remove(PACKAGE)


_cublame()
del _cublame
"#;

/// What the extension needs of the Python package.
const PACKAGE: [(&str, &str); 3] = [
    ("__init__.py", include_str!("../../python/cublame/__init__.py")),
    ("notebook.py", include_str!("../../python/cublame/notebook.py")),
    ("program.py", include_str!("../../python/cublame/program.py")),
];

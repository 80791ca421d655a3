//! One error type for the edges: one sentence, one hint that works, and whose fault it is.

use std::fmt;

/// Whose fault an error is. It decides the exit code and whether a bug report is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The command line or a file that the user wrote.
    User,
    /// The machine: a folder that cannot be written, a missing program, a full disk.
    Environment,
    /// cublame itself.
    Internal,
}

/// What went wrong, for a person to read.
#[derive(Debug)]
pub struct Error {
    pub blame: Blame,
    /// One sentence without its final dot, in lower case, fit to follow "cublame: ".
    pub what: String,
    /// One thing to do about it that works.
    pub hint: Option<String>,
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn user(what: impl Into<String>) -> Self {
        Self::new(Blame::User, what)
    }

    pub fn environment(what: impl Into<String>) -> Self {
        Self::new(Blame::Environment, what)
    }

    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(Blame::Internal, what)
    }

    fn new(blame: Blame, what: impl Into<String>) -> Self {
        Self { blame, what: what.into(), hint: None, source: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The exit code of every command but `run` and `debug`, which keep 125 to 127 for their own failures.
    pub fn exit_code(&self) -> u8 {
        match self.blame {
            Blame::User => 2,
            Blame::Environment => 3,
            Blame::Internal => 4,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        if self.blame == Blame::Internal {
            write!(f, "\n  this is a fault of cublame itself; please report it with the command that you ran")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

//! Which mode a run takes, from everything that may say so.

use std::path::Path;

use cublame_core::mode::Mode;

use crate::os::files;

/// What was said about the mode, strongest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// `--mode`
    pub flag: Option<Mode>,
    /// CUBLAME_MODE
    pub variable: Option<String>,
    /// The first word of `.cublame/mode`.
    pub workspace: Option<String>,
    /// CUDA_LAUNCH_BLOCKING is 1 in the user's own environment.
    pub blocking_is_on: bool,
}

impl Wishes {
    /// `project` is the project's folder (`.cublame`).
    pub fn read(flag: Option<Mode>, project: &Path) -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            flag,
            variable: variable("CUBLAME_MODE"),
            workspace: workspace_word(project),
            blocking_is_on: variable("CUDA_LAUNCH_BLOCKING").as_deref() == Some("1"),
        }
    }

    /// Nobody has chosen one for this project.
    pub fn is_silent(&self) -> bool {
        self.flag.is_none() && self.variable.is_none() && self.workspace.is_none()
    }
}

/// The mode of a run, and what the user has to know about it, as whole sentences.
pub fn resolve_mode(wishes: &Wishes) -> (Mode, Vec<String>) {
    let mut notes = Vec::new();
    let mut named = |word: &Option<String>, place: &str| {
        let parsed = word.as_ref()?.parse();
        parsed.map_err(|unknown| notes.push(format!("{place} is left out of account: {unknown}."))).ok()
    };
    let wished = wishes.flag.or_else(|| named(&wishes.variable, "CUBLAME_MODE"));
    let wished = wished.or_else(|| named(&wishes.workspace, "the workspace's .cublame/mode"));
    // Whoever has set the variable wants exact lines and has paid for them: no mode of ours takes that away unasked.
    let wished = wished.unwrap_or(if wishes.blocking_is_on { Mode::Blocking } else { Mode::Trace });
    (wished, notes)
}

fn workspace_word(project: &Path) -> Option<String> {
    let bytes = files::read_beneath(project, &["mode"], 4096).ok()?;
    String::from_utf8_lossy(&bytes).split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wishes: Wishes, mode: Mode, notes: usize) {
        let (found, sentences) = resolve_mode(&wishes);
        assert_eq!((found, sentences.len()), (mode, notes), "{sentences:?}");
    }

    #[test]
    fn the_flag_wins_then_the_variable_then_the_workspace() {
        let said = |word: &str| Some(word.to_owned());
        let all = Wishes {
            flag: Some(Mode::Off),
            variable: said("blocking"),
            workspace: said("guard"),
            blocking_is_on: true,
        };
        check(all.clone(), Mode::Off, 0);
        check(Wishes { flag: None, ..all.clone() }, Mode::Blocking, 0);
        check(Wishes { flag: None, variable: said("off"), workspace: said("blocking"), ..all.clone() }, Mode::Off, 0);
        check(Wishes { flag: None, variable: None, workspace: said("blocking"), ..all }, Mode::Blocking, 0);
    }

    #[test]
    fn a_word_that_is_no_mode_is_said_and_left_out_of_account() {
        let wishes =
            Wishes { variable: Some("fast".to_owned()), workspace: Some("blocking".to_owned()), ..Wishes::default() };
        check(wishes, Mode::Blocking, 1);
    }

    #[test]
    fn a_users_own_blocking_is_kept_where_nothing_else_is_said() {
        check(Wishes { blocking_is_on: true, ..Wishes::default() }, Mode::Blocking, 0);
    }
}

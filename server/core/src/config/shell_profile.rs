//! `pydebug` in the user's shell profile: a function between two markers, never a global export.

use super::edit::{Edit, Refused};
use crate::mode::Mode;

const START: &str = "# >>> cublame >>>";
const END: &str = "# <<< cublame <<<";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    pub const ALL: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

    /// The shell that a program's path names (`$SHELL`).
    pub fn of_path(path: &str) -> Option<Shell> {
        let name = path.rsplit('/').next().unwrap_or(path);
        Shell::ALL.into_iter().find(|shell| shell.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
        }
    }

    /// The profile, relative to the home folder, where no variable of the shell says otherwise.
    pub fn profile(self) -> &'static str {
        match self {
            Shell::Bash => ".bashrc",
            Shell::Zsh => ".zshrc",
            Shell::Fish => ".config/fish/config.fish",
        }
    }
}

/// The edits that put the function into a profile, or bring it to this mode. What stands between the markers is ours.
pub fn add(text: &str, shell: Shell, mode: Mode) -> Result<Vec<Edit>, Refused> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let block = block(shell, mode).replace('\n', newline);
    Ok(match fence(text)? {
        Some((start, end)) if text[start..end] == block => Vec::new(),
        Some((start, end)) => vec![Edit::replace(start, end, block)],
        None => {
            let is_at_line_start = text.is_empty() || text.ends_with('\n');
            let before = if is_at_line_start { "" } else { newline };
            vec![Edit::insert(text.len(), format!("{before}{block}"))]
        }
    })
}

/// Does this text hold our lines?
pub fn is_there(text: &str) -> bool {
    fence(text).is_ok_and(|fence| fence.is_some())
}

/// The edits that take the function away again.
pub fn remove(text: &str) -> Result<Vec<Edit>, Refused> {
    Ok(fence(text)?.map(|(start, end)| Edit::delete(start, end)).into_iter().collect())
}

/// The 1-based lines that switch blocking on for every program that is ever started from this shell.
pub fn global_exports(text: &str) -> Vec<usize> {
    let switches_on = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["export", assignment, ..] => assignment.trim_matches(['"', '\'']).starts_with("CUDA_LAUNCH_BLOCKING="),
            ["set", flags, "CUDA_LAUNCH_BLOCKING", ..] => flags.starts_with('-') && flags.contains(['x', 'U']),
            ["set", _, flags, "CUDA_LAUNCH_BLOCKING", ..] => flags.starts_with('-') && flags.contains('x'),
            _ => false,
        }
    };
    text.lines().enumerate().filter(|(_, line)| switches_on(line)).map(|(index, _)| index + 1).collect()
}

fn block(shell: Shell, mode: Mode) -> String {
    let function = match shell {
        Shell::Bash | Shell::Zsh => format!("pydebug() {{\n    cublame run --mode {mode} -- python \"$@\"\n}}"),
        Shell::Fish => format!("function pydebug\n    cublame run --mode {mode} -- python $argv\nend"),
    };
    format!("{START}\n# `cublame configure shell --remove` takes these lines away.\n{function}\n{END}\n")
}

/// The block with its markers and its final newline.
fn fence(text: &str) -> Result<Option<(usize, usize)>, Refused> {
    let lines = || {
        text.split_inclusive('\n').scan(0, |offset, line| {
            let start = *offset;
            *offset += line.len();
            Some((start, *offset, line.trim()))
        })
    };
    let Some((start, _, _)) = lines().find(|(_, _, line)| *line == START) else {
        let lost_end = lines().find(|(_, _, line)| *line == END);
        return match lost_end {
            None => Ok(None),
            Some((at, _, _)) => Err(Refused::at(text, at, format!("`{END}` has no `{START}` before it"))),
        };
    };
    let end = lines().find(|(at, _, line)| *at > start && *line == END).map(|(_, end, _)| end);
    let end = end.ok_or_else(|| Refused::at(text, start, format!("`{START}` has no `{END}` after it")))?;
    Ok(Some((start, end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::apply;

    #[test]
    fn the_block_is_added_changed_and_removed() {
        for shell in Shell::ALL {
            for text in ["", "alias ll='ls -l'\n", "a\r\nb\r\n"] {
                let once = apply(text, &add(text, shell, Mode::Blocking).unwrap());
                assert!(once.starts_with(text) && once.contains("cublame run --mode blocking -- python"));
                assert_eq!(add(&once, shell, Mode::Blocking).unwrap(), []);
                let more = format!("{once}# mine\n");
                let other = apply(&more, &add(&more, shell, Mode::Trace).unwrap());
                assert_eq!(other, more.replace("blocking", "trace"));
                assert_eq!(apply(&other, &remove(&other).unwrap()), format!("{text}# mine\n"));
            }
        }
        let open_end = apply("a", &add("a", Shell::Bash, Mode::Blocking).unwrap());
        assert_eq!(apply(&open_end, &remove(&open_end).unwrap()), "a\n");
    }

    #[test]
    fn half_a_fence_is_refused() {
        let refused = |text: &str| add(text, Shell::Bash, Mode::Off).unwrap_err().to_string();
        assert_eq!(
            refused("a\n# >>> cublame >>>\nb"),
            "line 2, column 1: `# >>> cublame >>>` has no `# <<< cublame <<<` after it"
        );
        assert_eq!(
            refused("# <<< cublame <<<\n# >>> cublame >>>\n"),
            "line 2, column 1: `# >>> cublame >>>` has no `# <<< cublame <<<` after it"
        );
        assert_eq!(
            refused("# <<< cublame <<<\n"),
            "line 1, column 1: `# <<< cublame <<<` has no `# >>> cublame >>>` before it"
        );
    }

    #[test]
    fn a_global_export_is_seen() {
        let text = "# export CUDA_LAUNCH_BLOCKING=1\nexport CUDA_LAUNCH_BLOCKING=1\nset -gx CUDA_LAUNCH_BLOCKING 1\nset -g -x CUDA_LAUNCH_BLOCKING 1\nexport 'CUDA_LAUNCH_BLOCKING=1'\nalias x='CUDA_LAUNCH_BLOCKING=1 python'\n";
        assert_eq!(global_exports(text), [2, 3, 4, 5]);
        let ours = apply("", &add("", Shell::Bash, Mode::Blocking).unwrap());
        assert!(global_exports(&ours).is_empty());
    }
}

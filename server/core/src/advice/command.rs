//! Command lines that can be pasted into a shell.

use super::platform::Os;

/// Fills a command's placeholders; None where a value is missing, for half a command does not work.
pub(super) fn fill(command: &str, values: &[(&str, &str)]) -> Option<String> {
    let filled = values.iter().fold(command.to_owned(), |filled, (name, value)| match *name {
        // The command of the run is filled last: it may hold braces of its own.
        "argv" => filled,
        _ => filled.replace(&format!("{{{name}}}"), value),
    });
    match (filled.contains("{argv}"), values.iter().find(|(name, _)| *name == "argv")) {
        (true, Some((_, argv))) => Some(filled.replace("{argv}", argv)),
        (true, None) => None,
        (false, _) => (!filled.contains('{')).then_some(filled),
    }
}

/// Quotes a command for `sh`, or for `cmd` and PowerShell alike on Windows.
///
/// None on Windows where an argument holds what those two read differently.
pub(super) fn quote(argv: &[String], os: Option<Os>) -> Option<String> {
    let quoted: Option<Vec<String>> = argv.iter().map(|word| quote_word(word, os)).collect();
    quoted.map(|words| words.join(" "))
}

fn quote_word(word: &str, os: Option<Os>) -> Option<String> {
    if is_plain(word) {
        return Some(word.to_owned());
    }
    match os {
        Some(Os::Windows) => {
            let readable = !word.contains(['"', '$', '`', '%', '\n']) && !word.ends_with('\\');
            readable.then(|| format!("\"{word}\""))
        }
        _ => Some(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

/// Does a word mean itself in every shell?
pub(super) fn is_plain(word: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=,+".contains(character);
    let windows_path = word.as_bytes().get(1) == Some(&b':') && word.chars().all(|c| plain(c) || c == '\\');
    !word.is_empty() && (word.chars().all(plain) || windows_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(words: &[&str], os: Os) -> Option<String> {
        quote(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(), Some(os))
    }

    #[test]
    fn words_survive_the_shell() {
        for (os, words, command) in [
            (Os::Linux, &["python", "train.py", "--lr=1e-3"][..], Some("python train.py --lr=1e-3")),
            (Os::Linux, &["python", "-c", "print('a b')"], Some(r"python -c 'print('\''a b'\'')'")),
            (Os::Linux, &["echo", "", "$HOME", "~"], Some("echo '' '$HOME' '~'")),
            (Os::Windows, &[r"C:\Python\python.exe", "my file.py"], Some(r#"C:\Python\python.exe "my file.py""#)),
            (Os::Windows, &["python", "%PATH%"], None),
        ] {
            assert_eq!(quoted(words, os).as_deref(), command);
        }
    }

    #[test]
    fn a_command_without_its_value_is_left_out() {
        assert_eq!(fill("cublame run -- {argv}", &[]), None);
        assert_eq!(fill("ss -ltnp sport = :{port}", &[("argv", "python x.py")]), None);
        assert_eq!(
            fill("a {port} -- {argv}", &[("argv", "x '{port}'"), ("port", "1")]).as_deref(),
            Some("a 1 -- x '{port}'")
        );
    }
}

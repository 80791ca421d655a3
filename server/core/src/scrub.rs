//! Text that may be shown to strangers: without secrets, and without whose machine it comes from.
//!
//! A failure's report goes into issue trackers, and a log holds what programs print: command lines, environments, URLs.
//! What looks like a secret goes even where it is none; a line that is less readable does no harm there.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::pattern::pattern;

/// Whose machine it is, as far as that is known. What is empty is not looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// `/home/dev`
    pub home: String,
    /// `dev`
    pub user: String,
    /// `node17.cluster`
    pub host: String,
}

/// Removes secrets, home folders, and the names of the user and the machine.
///
/// Nothing is added to a text that holds none of these, and a text that was scrubbed once stays as it is.
pub fn scrub(text: &str, identity: &Identity) -> String {
    let mut text = text.to_owned();
    for secret in SECRETS.iter() {
        text = secret.replace_all(&text, |found: &Captures| hidden(found)).into_owned();
    }
    if is_telling(&identity.home) {
        text = replace_words(&text, &identity.home, "~");
    }
    text = HOME_FOLDERS.replace_all(&text, "${folder}user").into_owned();
    for (name, shown) in [(&identity.user, "user"), (&identity.host, "host")] {
        if is_telling(name) && !TOO_COMMON.contains(&name.as_str()) {
            text = replace_words(&text, name, shown);
        }
    }
    text
}

/// What stands where a secret stood.
pub const REMOVED: &str = "[removed]";

/// The text of a match with its group `secret` taken out; the whole match where there is no such group.
fn hidden(found: &Captures) -> String {
    let whole = found.get_match();
    let secret = found.name("secret").unwrap_or(whole);
    let (start, end) = (secret.start() - whole.start(), secret.end() - whole.start());
    format!("{}{REMOVED}{}", &whole.as_str()[..start], &whole.as_str()[end..])
}

/// Shapes of secrets: each names the part to take out, or is a secret as a whole.
///
/// A word like `token` says nothing by itself in programs that are about tokens: it counts in the name of a variable of
/// the environment, of an option, of a URL's parameter, or before a text in quotes.
static SECRETS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    const NAMES: &str = "password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential";
    [
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
        // What stands before the host of a URL.
        r#"\b[a-z][a-z0-9+.-]*://(?P<secret>[^\s/@'"<>]+)@"#,
        r"(?i)\bBearer\s+(?P<secret>[\w.~+/=-]{8,})",
        r#"(?i)\bAuthorization['"]?\s*[:=]\s*['"]?(?:Basic|Digest|Token)\s+(?P<secret>[^\s'"]+)"#,
        r#"\b[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)(?:_[A-Z0-9_]*)?['"]?\s*[:=]\s*(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s'"]+)"#,
        &format!(r#"(?i)--?[\w-]*(?:{NAMES})(?:=|\s+)(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s'"-][^\s'"]*)"#),
        &format!(r#"(?i)[?&][\w-]*(?:{NAMES}|sig|signature|key)=(?P<secret>[^\s&'"<>]+)"#),
        &format!(r#"(?i)\b[\w-]*(?:{NAMES})['"]?\s*[:=]\s*(?P<secret>"[^"\n]+"|'[^'\n]+')"#),
        r#"(?i)\b(?:password|passwd|passphrase|secret|api[_-]?key)\s*[:=]\s*(?P<secret>[^\s'",;()\[\]{}]+)"#,
        r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
        r"\b(?:hf|ghp|gho|ghu|ghs|ghr|npm|pypi|glpat|wandb|nvapi|xox[abprs]|sk|pk|rk|gsk|r8)[_-][\w-]{16,}",
        r"\bgithub_pat_\w{20,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bAIza[\w-]{30,}",
    ]
    .into_iter()
    .map(pattern)
    .collect()
});

/// The folder of anybody's home, whose name is a person's.
static HOME_FOLDERS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?P<folder>/home/|/Users/|(?i:[A-Z]:[\\/]+Users[\\/]+))[^/\\\s:'"<>|]+"#));

/// Names that are nobody's in particular.
const TOO_COMMON: [&str; 8] = ["root", "user", "host", "localhost", "ubuntu", "runner", "admin", "python"];

/// Would replacing it tell more than it hides? A short name is a part of many words, and the root folder of all paths.
fn is_telling(name: &str) -> bool {
    name.len() > 2
}

/// Replaces a name where it is not a part of a longer one.
fn replace_words(text: &str, name: &str, shown: &str) -> String {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let in_word = |side: Option<char>, edge: Option<char>| side.is_some_and(is_word) && edge.is_some_and(is_word);
        let alone = !in_word(before.chars().next_back().or(replaced.chars().next_back()), name.chars().next())
            && !in_word(after.chars().next(), name.chars().next_back());
        replaced.push_str(before);
        replaced.push_str(if alone { shown } else { name });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { home: "/home/ada".to_owned(), user: "ada".to_owned(), host: "node17".to_owned() }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(scrub(text, &identity()), expected);
        assert_eq!(scrub(expected, &identity()), expected, "twice is once");
    }

    #[test]
    fn homes_and_names_are_nobodys() {
        check("File \"/home/ada/proj/train.py\", line 8", "File \"~/proj/train.py\", line 8");
        check("/home/ada.old/x /home/bob/y", "~.old/x /home/user/y");
        check(r"C:\Users\Ada Lovelace\x", r"C:\Users\user Lovelace\x");
        check("/Users/ada/proj and /mnt/ada/data on node17:8888", "/Users/user/proj and /mnt/user/data on host:8888");
        check("Canada, adamw and node170", "Canada, adamw and node170");
    }

    #[test]
    fn secrets_go_whatever_carries_them() {
        check("HF_TOKEN=hf_aBcD python train.py", "HF_TOKEN=[removed] python train.py");
        check("'WANDB_API_KEY': '0123456789abcdef'", "'WANDB_API_KEY': [removed]");
        check("export AWS_SECRET_ACCESS_KEY=\"a b c\"", "export AWS_SECRET_ACCESS_KEY=[removed]");
        check("train.py --hub-token abc123 --epochs 3", "train.py --hub-token [removed] --epochs 3");
        check("train.py --password=p@ss", "train.py --password=[removed]");
        check("login(token=\"abc\", api_key='x y')", "login(token=[removed], api_key=[removed])");
        check("password: hunter2", "password: [removed]");
        check("https://ada:pw@git.example/x.git", "https://[removed]@git.example/x.git");
        check("https://h.example/b?X-Amz-Signature=0af&x=1", "https://h.example/b?X-Amz-Signature=[removed]&x=1");
        check("Authorization: Bearer abcdefgh12", "Authorization: Bearer [removed]");
        check("sent hf_abcdefghijklmnopqrst and sk-proj-abcdefghijklmnopq", "sent [removed] and [removed]");
        check("eyJhbGciOiJI.eyJzdWIiOiIx.sig", "[removed]");
        check("key AKIAABCDEFGHIJKLMNOP.", "key [removed].");
        check("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nafter", "[removed]\nafter");
        check("-----BEGIN PRIVATE KEY-----\ncut off", "[removed]");
    }

    #[test]
    fn programs_about_tokens_stay_readable() {
        for text in [
            "tokens = tokenizer(text, return_tensors=\"pt\")",
            "token_ids: torch.Size([32, 128])",
            "key = self.key(query) @ value",
            "embedding(token, weight)",
            "    return F.embedding(tok, self.weight)",
            "RuntimeError: CUDA error: device-side assert triggered",
            "--max-tokens 128",
            "num_tokens=4096 secretly",
            "MAX_TOKENS=4096 TOKENIZERS_PARALLELISM=false",
        ] {
            check(text, text);
        }
    }
}

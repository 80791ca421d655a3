//! Kernel launches of CUDA and C++ source: a light reading that knows comments, strings and braces.

use std::ops::Range;

/// One `kernel<<<...>>>(...)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// From the kernel's name to the closing parenthesis.
    pub range: Range<usize>,
    /// The bytes after its `;` up to the end of the function that it is in.
    pub rest: Range<usize>,
    /// Behind its `;`.
    pub after: usize,
    /// The name of the function that it is in.
    pub function: Option<String>,
}

/// The launches of a text, with comments and strings passed over.
pub fn launches(text: &str) -> Vec<Launch> {
    let code = blanked(text);
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("<<<") {
        let Some(close) = code[at..].find(">>>").map(|close| at + close + 3) else { continue };
        let Some(open) = bytes[close..].iter().position(|byte| !byte.is_ascii_whitespace()).map(|skip| close + skip)
        else {
            continue;
        };
        if bytes[open] != b'(' {
            continue;
        }
        let Some(end) = closing(bytes, open) else { continue };
        let Some(semicolon) =
            bytes[end + 1..].iter().position(|byte| !byte.is_ascii_whitespace()).map(|skip| end + 1 + skip)
        else {
            continue;
        };
        if bytes[semicolon] != b';' {
            continue;
        }
        let Some(function) = function_around(bytes, semicolon + 1) else { continue };
        found.push(Launch {
            range: name_start(&code, at)..end + 1,
            rest: semicolon + 1..function.end,
            after: semicolon + 1,
            function: function_name(&code, function.start),
        });
    }
    found
}

/// The text with comments, strings and preprocessor definitions as blanks, every other byte where it was.
pub fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    let blank = |out: &mut Vec<u8>, range: Range<usize>| {
        for byte in &mut out[range] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end);
            blank(&mut out, at..end);
            at = end;
        } else if rest.starts_with(b"/*") {
            let end = text[at + 2..].find("*/").map_or(bytes.len(), |end| at + 2 + end + 2);
            blank(&mut out, at..end);
            at = end;
        } else if rest.starts_with(b"R\"(") {
            let end = text[at..].find(")\"").map_or(bytes.len(), |end| at + end + 2);
            blank(&mut out, at..end);
            at = end;
        } else if matches!(bytes[at], b'"' | b'\'') {
            let end = end_of_string(bytes, at);
            blank(&mut out, at..end);
            at = end;
        } else if bytes[at] == b'#' && line_is_blank_before(bytes, at) {
            // A macro that launches is checked where it is used, if at all.
            let end = end_of_directive(bytes, at);
            blank(&mut out, at..end);
            at = end;
        } else {
            at += 1;
        }
    }
    // Blanks stand for whole bytes of a character, so this cannot fail; if it did, there is nothing to read.
    String::from_utf8(out).unwrap_or_default()
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    // An apostrophe between digits separates them (1'000'000).
    if quote == b'\'' && start > 0 && bytes[start - 1].is_ascii_alphanumeric() {
        return start + 1;
    }
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn line_is_blank_before(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().take_while(|byte| **byte != b'\n').all(u8::is_ascii_whitespace)
}

fn end_of_directive(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n').map(|end| at + end) {
        let goes_on = bytes[..end].ends_with(b"\\") || bytes[..end].ends_with(b"\\\r");
        if !goes_on {
            return end;
        }
        at = end + 1;
    }
    bytes.len()
}

/// The parenthesis that closes the one at `open`.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The texts behind the calls of a function, each up to the end of the function that calls it.
pub fn after_calls<'c>(code: &'c str, function: &str) -> Vec<&'c str> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices(function) {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let part_of_a_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let behind = bytes.get(at + function.len()).copied();
        let is_call = !before.is_some_and(part_of_a_word) && matches!(behind, Some(b'(' | b'<'));
        if is_call && let Some(caller) = function_around(bytes, at) {
            found.push(&code[at..caller.end]);
        }
    }
    found
}

/// The name before the parameters of the function whose body opens at a brace.
fn function_name(code: &str, brace: usize) -> Option<String> {
    let start = code[..brace].rfind([';', '{', '}']).map_or(0, |at| at + 1);
    let before = code[start..brace].split('(').next()?.trim_end();
    let name = before.rsplit(|character: char| !character.is_ascii_alphanumeric() && character != '_').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The braces of the function around a position: the outermost block that is no namespace and no class.
fn function_around(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let mut open: Vec<usize> = Vec::new();
    for (offset, byte) in bytes[..at].iter().enumerate() {
        match byte {
            b'{' => open.push(offset),
            b'}' => {
                open.pop();
            }
            _ => {}
        }
    }
    let function = open.iter().position(|&brace| !opens_a_scope(bytes, brace))?;
    let mut depth = open.len();
    for (offset, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == function {
                    return Some(open[function]..offset);
                }
            }
            _ => {}
        }
    }
    None
}

/// Does a brace open a namespace, an `extern "C"` block or a class?
fn opens_a_scope(bytes: &[u8], brace: usize) -> bool {
    let start = bytes[..brace].iter().rposition(|byte| matches!(byte, b';' | b'{' | b'}')).map_or(0, |at| at + 1);
    let header = String::from_utf8_lossy(&bytes[start..brace]);
    let mut words = header.split_whitespace();
    !header.contains('(') && words.any(|word| matches!(word, "namespace" | "extern" | "class" | "struct" | "union"))
}

/// Where the kernel's name starts, with its namespaces and template arguments.
fn name_start(code: &str, launch: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = launch;
    let mut angles = 0;
    while at > 0 {
        match bytes[at - 1] {
            b'>' => angles += 1,
            b'<' if angles > 0 => angles -= 1,
            byte if angles > 0 => {
                if matches!(byte, b';' | b'{' | b'}') {
                    break;
                }
            }
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':') => {}
            b' ' | b'\n' | b'\r' | b'\t' if code[at..launch].trim().is_empty() => {}
            _ => break,
        }
        at -= 1;
    }
    at
}

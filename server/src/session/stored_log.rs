//! `log.jsonl`: the condensed log on disk, a first line with the totals and then one line of JSON for each line kept.

use std::io;

use cublame_core::log::{Head, Line, Log};

use super::folder::Stored;

const SCHEMA: u32 = 1;

pub fn render(log: &Log) -> io::Result<Vec<u8>> {
    let head = Head { schema: SCHEMA, total_lines: log.total_lines, total_bytes: log.total_bytes };
    let mut bytes = serde_json::to_vec(&head)?;
    bytes.push(b'\n');
    for line in &log.lines {
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

pub fn parse(bytes: &[u8]) -> Stored<Log> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let head = match lines.next().map(serde_json::from_slice::<Head>) {
        Some(Ok(head)) if head.schema <= SCHEMA => head,
        Some(Ok(head)) => {
            return Stored::Damaged(format!(
                "log.jsonl was written by a later version of cublame (schema {}).",
                head.schema
            ));
        }
        Some(Err(failure)) => return Stored::Damaged(format!("log.jsonl is damaged: {failure}.")),
        None => return Stored::Damaged("log.jsonl is empty.".to_owned()),
    };
    let lines: Result<Vec<Line>, _> = lines.map(serde_json::from_slice).collect();
    match lines {
        Ok(lines) => Stored::Whole(Log { lines, total_lines: head.total_lines, total_bytes: head.total_bytes }),
        Err(failure) => Stored::Damaged(format!("log.jsonl is damaged: {failure}.")),
    }
}

#[cfg(test)]
mod tests {
    use cublame_core::log::Stream;

    use super::*;

    fn log() -> Log {
        let line = |number, text: &str| Line { stream: Stream::Stderr, number, text: text.to_owned(), repeats: 96 };
        Log { lines: vec![line(1, "RuntimeError: \u{1b}[1mboom"), line(7, "")], total_lines: 7, total_bytes: 400 }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(parse(&render(&log()).unwrap()), Stored::Whole(log()));
    }

    #[test]
    fn damage_is_a_sentence() {
        let whole = render(&log()).unwrap();
        for bytes in [&whole[..whole.len() - 5], b"", b"[]\n", b"{\"schema\":9,\"total_lines\":0,\"total_bytes\":0}\n"]
        {
            assert!(matches!(parse(bytes), Stored::Damaged(sentence) if sentence.starts_with("log.jsonl ")));
        }
    }
}

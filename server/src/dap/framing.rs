//! The frames of the Debug Adapter Protocol: bytes to messages and back, without any input or output of its own.
//!
//! A message keeps its bytes, so that what is passed on is what came. After a damaged header the next good one is found.

/// Cuts a stream into messages.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// What stands before it has been given out.
    at: usize,
    /// Damage was reported, and no good header has come since.
    skipping: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    Message(Message),
    /// Bytes that are no message, as one sentence without its final dot.
    Damaged(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// As it came, headers included.
    pub bytes: Vec<u8>,
    body: usize,
}

impl Message {
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }
}

/// A longer message is not read: the longest honest one is a source that an editor asks for.
const LONGEST_MESSAGE: usize = 64 << 20;
/// Headers that do not end within this are damage.
const LONGEST_HEADERS: usize = 4096;
const NAME: &[u8] = b"content-length:";
const END: &[u8] = b"\r\n\r\n";

/// A body as a message.
pub fn framed(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl Frames {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, or damage; None until more bytes are there.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            let rest = &self.bytes[self.at..];
            // Blank lines between messages are nothing to speak of.
            let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.at += blanks;
            let rest = &self.bytes[self.at..];
            let Some(end) = find(rest, END).filter(|end| *end <= LONGEST_HEADERS) else {
                if rest.len() <= LONGEST_HEADERS + END.len() {
                    return None;
                }
                // The start of a good header may stand at the end of what there is.
                let skipped = last_name(&rest[1..]).map_or(rest.len() - NAME.len(), |at| at + 1);
                match self.skip(skipped, "the headers of a message do not end") {
                    Some(damage) => return Some(damage),
                    None => continue,
                }
            };
            let headers = &rest[..end];
            let name = last_name(headers);
            // Rubbish without a line end of its own may stand before a good header.
            if let Some(rubbish) = name.filter(|at| !only_headers(&headers[..*at])) {
                let shown = shortened(&headers[..rubbish]);
                match self.skip(rubbish, &format!("`{shown}` is no header of a message")) {
                    Some(damage) => return Some(damage),
                    None => continue,
                }
            }
            let length = name.and_then(|at| number(&headers[at + NAME.len()..]));
            let (body, problem) = (
                end + END.len(),
                match length {
                    None => Some(format!("`{}` does not say how long the message is", shortened(headers))),
                    Some(length) if length > LONGEST_MESSAGE => {
                        Some(format!("a message of {length} bytes is not read"))
                    }
                    Some(_) => None,
                },
            );
            if let Some(problem) = problem {
                match self.skip(body, &problem) {
                    Some(damage) => return Some(damage),
                    None => continue,
                }
            }
            let whole = body + length.unwrap_or_default();
            let bytes = rest.get(..whole)?.to_vec();
            self.at += whole;
            self.skipping = false;
            return Some(Frame::Message(Message { bytes, body }));
        }
    }

    /// Passes over bytes. One piece of damage is reported once, however long it is.
    fn skip(&mut self, bytes: usize, what: &str) -> Option<Frame> {
        self.at += bytes;
        let reported = std::mem::replace(&mut self.skipping, true);
        (!reported).then(|| Frame::Damaged(what.to_owned()))
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn last_name(bytes: &[u8]) -> Option<usize> {
    bytes.windows(NAME.len()).rposition(|window| window.eq_ignore_ascii_case(NAME))
}

/// Whole lines of the form `Name: value`, or nothing.
fn only_headers(bytes: &[u8]) -> bool {
    let is_header = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':');
        colon.is_some_and(|at| line[..at].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-'))
    };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    bytes.is_empty() || (bytes.ends_with(b"\n") && lines.into_iter().all(is_header))
}

fn number(bytes: &[u8]) -> Option<usize> {
    let line = bytes.split(|byte| *byte == b'\r' || *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

fn shortened(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What came out, one entry a frame: the body of a message, or the damage after `!`.
    fn cut(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<String> {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in pieces {
            frames.feed(&piece);
            while let Some(frame) = frames.next_frame() {
                found.push(match frame {
                    Frame::Message(message) => String::from_utf8_lossy(message.body()).into_owned(),
                    Frame::Damaged(what) => format!("!{what}"),
                });
            }
        }
        found
    }

    /// However the stream is cut, the same comes out.
    #[track_caller]
    fn check(stream: &[u8], expected: &[&str]) {
        assert_eq!(cut(std::iter::once(stream.to_vec())), expected);
        assert_eq!(cut(stream.iter().map(|byte| vec![*byte])), expected);
        assert_eq!(cut(stream.chunks(7).map(<[u8]>::to_vec)), expected);
    }

    fn good() -> Vec<u8> {
        framed(r#"{"seq":1}"#)
    }

    const GOOD: &str = r#"{"seq":1}"#;

    #[test]
    fn messages_keep_their_bytes() {
        let stream = b"Content-Type: x\r\ncontent-length:  2 \r\n\r\n{}".to_vec();
        let mut frames = Frames::default();
        frames.feed(&stream);
        let Some(Frame::Message(message)) = frames.next_frame() else { panic!("no message") };
        assert_eq!((message.body(), &message.bytes), (&b"{}"[..], &stream));
        check(&[good(), b"\r\n\n".to_vec(), good()].concat(), &[GOOD, GOOD]);
        check(&[framed("{}"), framed("ü\n\0")].concat(), &["{}", "ü\n\0"]);
        check(&framed(""), &[""]);
    }

    #[test]
    fn after_damage_the_next_message_is_found() {
        let after = |damage: &[u8]| [damage, &good()].concat();
        check(&after(b"rubbish"), &["!`rubbish` is no header of a message", GOOD]);
        check(&after(b"what is this\r\n\r\n"), &["!`what is this` does not say how long the message is", GOOD]);
        check(
            &after(b"Content-Length: ten\r\n\r\n"),
            &["!`Content-Length: ten` does not say how long the message is", GOOD],
        );
        check(
            &after(b"Content-Length: -1\r\n\r\n"),
            &["!`Content-Length: -1` does not say how long the message is", GOOD],
        );
        check(&after(b"Content-Length: 99999999999\r\n\r\n"), &["!a message of 99999999999 bytes is not read", GOOD]);
        check(&after(b"a\r\n\r\nb\r\n\r\n"), &["!`a` does not say how long the message is", GOOD]);
        check(&after(b"\xff\xfe\r\nx\r\n"), &["!`\u{fffd}\u{fffd}\r\nx` is no header of a message", GOOD]);
    }

    #[test]
    fn endless_headers_take_no_memory() {
        let mut frames = Frames::default();
        let mut damage = 0;
        for _ in 0..1000 {
            frames.feed(&[b'x'; 8192]);
            while frames.next_frame().is_some() {
                damage += 1;
            }
        }
        assert_eq!(damage, 1);
        assert!(frames.bytes.len() < 32 << 10, "{}", frames.bytes.len());
        frames.feed(&good());
        assert!(matches!(frames.next_frame(), Some(Frame::Message(message)) if message.body() == GOOD.as_bytes()));
    }
}

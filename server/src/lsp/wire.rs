//! The client's bytes, before the framework sees them: split into messages, recorded, and made safe.
//!
//! The transport of tower-lsp-server 0.23 ends at the first message that it cannot decode, because its `FramedRead` ends
//! after an error (tokio-util, `framed_impl.rs`, "errored"). So what it could not decode never reaches it: a damaged
//! message is replaced by a notification of our own, which [`super::guarded`] answers with the error the protocol asks for.

use std::io::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tower_lsp::jsonrpc::{ErrorCode, Id, Request, Response};

use super::handlers::notebook;

/// The notification that stands for a message which could not be read.
pub const DAMAGED: &str = "$/cublame/damaged";

/// The parameters of [`DAMAGED`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Damage {
    /// A code of JSON-RPC 2.0: -32700 where the text is no JSON, -32600 where it is no message.
    pub code: i64,
    pub message: String,
    /// The id of the request, where it could be told.
    pub id: Id,
}

/// A longer message is not read. The longest honest one is the text of an open file.
const LONGEST_MESSAGE: usize = 64 << 20;

/// A header line longer than this is damage.
const LONGEST_HEADER: usize = 4096;

/// How a client's messages ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    Exit,
    EndOfFile,
}

/// Passes messages from `client` to `server` until the client's end of file or its `exit`; `record` gets every byte read.
pub async fn pass_on<R, W>(client: R, mut server: W, record: Option<std::fs::File>) -> std::io::Result<Last>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut client = Reader { input: BufReader::with_capacity(64 << 10, client), record };
    while let Some(message) = client.next_message().await? {
        let found = match message {
            Ok(body) => examine(body),
            Err(message) => Found::Damaged(Damage { code: ErrorCode::ParseError.code(), message, id: Id::Null }),
        };
        let message = match &found {
            Found::Message(body) | Found::Exit(body) => body,
            Found::Damaged(damage) => &replacement(damage),
            Found::Nothing => continue,
        };
        server.write_all(format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes()).await?;
        server.write_all(message).await?;
        server.flush().await?;
        if matches!(found, Found::Exit(_)) {
            return Ok(Last::Exit);
        }
    }
    Ok(Last::EndOfFile)
}

/// What a message's body turned out to be.
enum Found {
    /// A message that the framework takes.
    Message(Vec<u8>),
    /// The last message: nothing after it is read.
    Exit(Vec<u8>),
    Damaged(Damage),
    /// Nothing that wants an answer.
    Nothing,
}

fn examine(body: Vec<u8>) -> Found {
    if body.is_empty() {
        return Found::Nothing;
    }
    let mut value: Value = match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("the message is not JSON: {error}");
            return Found::Damaged(Damage { code: ErrorCode::ParseError.code(), message, id: Id::Null });
        }
    };
    let id = value.get("id").and_then(|id| Id::deserialize(id).ok()).unwrap_or_default();
    let invalid = |message: String| Found::Damaged(Damage { code: ErrorCode::InvalidRequest.code(), message, id });
    if !value.is_object() {
        return invalid("a message is one JSON object; batches are no part of the protocol".to_owned());
    }
    if value.get("method").is_some() {
        let of_notebook =
            value.get("method").and_then(Value::as_str).is_some_and(|it| it.starts_with("notebookDocument/"));
        let body = match value.get_mut("params").filter(|_| of_notebook) {
            Some(params) => {
                notebook::tidy(params);
                value.to_string().into_bytes()
            }
            None => body,
        };
        return match Request::deserialize(value) {
            Ok(request) if request.method() == "exit" => Found::Exit(body),
            Ok(_) => Found::Message(body),
            Err(error) => invalid(format!("this is no request: {error}")),
        };
    }
    match Response::deserialize(value) {
        Ok(_) => Found::Message(body),
        // A broken answer gets no answer of its own: two peers could go on like that for ever. It is said in the log.
        Err(error) => {
            eprintln!("cublame lsp: an answer of the editor could not be read: {error}");
            Found::Nothing
        }
    }
}

fn replacement(damage: &Damage) -> Vec<u8> {
    let message = serde_json::json!({ "jsonrpc": "2.0", "method": DAMAGED, "params": damage });
    message.to_string().into_bytes()
}

struct Reader<R> {
    input: BufReader<R>,
    record: Option<std::fs::File>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// The next message's body, or why there is none here; None at the end of the input.
    async fn next_message(&mut self) -> std::io::Result<Option<Result<Vec<u8>, String>>> {
        let mut length: Option<usize> = None;
        let mut damage: Option<String> = None;
        loop {
            let Some(line) = self.header_line().await? else { return Ok(None) };
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            if line.is_empty() {
                match (length, damage.take()) {
                    (Some(length), None) => return Ok(self.body(length).await?.map(Ok)),
                    (_, Some(damage)) => return Ok(Some(Err(damage))),
                    // Blank lines between messages are nothing to speak of.
                    (None, None) => continue,
                }
            }
            match header(line) {
                Header::Length(bytes) if bytes <= LONGEST_MESSAGE => {
                    // A good header after rubbish starts a good message: the rubbish alone is answered.
                    if let Some(damage) = damage.take() {
                        eprintln!("cublame lsp: skipped: {damage}");
                    }
                    length = Some(bytes);
                }
                Header::Length(bytes) => damage = Some(format!("a message of {bytes} bytes is not read")),
                Header::Other => {}
                Header::Rubbish => damage = Some(format!("`{}` is no header of a message", shortened(line))),
            }
        }
    }

    /// A line with its end, cut to its last [`LONGEST_HEADER`] bytes; None at the end of the input.
    async fn header_line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            let piece = self.input.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|&byte| byte == b'\n');
            let piece = &piece[..end.map_or(piece.len(), |end| end + 1)];
            line.extend_from_slice(piece);
            record(&mut self.record, piece);
            let used = piece.len();
            self.input.consume(used);
            if line.len() > LONGEST_HEADER {
                line.drain(..line.len() - LONGEST_HEADER);
            }
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }

    async fn body(&mut self, length: usize) -> std::io::Result<Option<Vec<u8>>> {
        // Room is made as the bytes come: the length is the client's claim.
        let mut body = Vec::with_capacity(length.min(1 << 20));
        let read = (&mut self.input).take(length as u64).read_to_end(&mut body).await?;
        record(&mut self.record, &body);
        Ok((read == length).then_some(body))
    }
}

/// A recording that cannot be written must not end the session that it records.
fn record(file: &mut Option<std::fs::File>, bytes: &[u8]) {
    if let Some(open) = file
        && let Err(error) = open.write_all(bytes)
    {
        eprintln!("cublame lsp: the recording ends here: {error}");
        *file = None;
    }
}

enum Header {
    Length(usize),
    Other,
    Rubbish,
}

/// A header line, which may follow rubbish that had no line end of its own.
fn header(line: &str) -> Header {
    const NAME: &str = "content-length:";
    let lower = line.to_ascii_lowercase();
    if let Some(at) = lower.rfind(NAME) {
        return match line[at + NAME.len()..].trim().parse() {
            Ok(length) => Header::Length(length),
            Err(_) => Header::Rubbish,
        };
    }
    if lower.starts_with("content-type:") { Header::Other } else { Header::Rubbish }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What reaches the server: one line a message.
    async fn passed(client: &[u8]) -> Vec<String> {
        let mut out = Vec::new();
        pass_on(client, &mut out, None).await.expect("reading from memory");
        let mut messages = Vec::new();
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            let end = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a header");
            let head = std::str::from_utf8(&rest[..end]).expect("text");
            let length: usize = head.strip_prefix("Content-Length: ").expect("the header").parse().expect("a number");
            messages.push(String::from_utf8(rest[end + 4..end + 4 + length].to_vec()).expect("text"));
            rest = &rest[end + 4 + length..];
        }
        messages
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    const GOOD: &str = r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;

    async fn check(client: &str, expected: &[&str]) {
        let passed = passed(client.as_bytes()).await;
        assert_eq!(passed.len(), expected.len(), "{passed:#?}");
        for (message, part) in passed.iter().zip(expected) {
            assert!(message.contains(part), "{message} does not contain {part}");
        }
    }

    #[tokio::test]
    async fn good_messages_pass_as_they_are() {
        let other_headers =
            format!("content-type: application/vscode-jsonrpc\r\ncontent-length: {}\r\n\r\n{GOOD}", GOOD.len());
        check(&(framed(GOOD) + &other_headers), &[GOOD, GOOD]).await;
    }

    #[tokio::test]
    async fn damage_is_answered_and_the_next_message_is_read() {
        let next = framed(GOOD);
        check(&(framed("{\"jsonrpc\": ") + &next), &["-32700", GOOD]).await;
        check(&(framed("[]") + &next), &["-32600", GOOD]).await;
        check(&(framed(r#"{"jsonrpc":"1.0","method":"x","id":7}"#) + &next), &[r#""id":7"#, GOOD]).await;
        check(&(framed(r#"{"jsonrpc":"2.0","method":7,"id":"a"}"#) + &next), &[r#""id":"a""#, GOOD]).await;
        check(&("Content-Length: ten\r\n\r\n".to_owned() + &next), &["-32700", GOOD]).await;
        check(&("Content-Length: 99999999999999\r\n\r\n".to_owned() + &next), &["99999999999999", GOOD]).await;
        check(&("what is this\r\n\r\n".to_owned() + &next), &["what is this", GOOD]).await;
    }

    #[tokio::test]
    async fn rubbish_without_a_line_end_does_not_take_the_next_message_with_it() {
        check(&("rubbish".to_owned() + &framed(GOOD)), &[GOOD]).await;
    }

    #[tokio::test]
    async fn a_broken_answer_is_dropped() {
        check(&(framed(r#"{"jsonrpc":"2.0","id":3}"#) + &framed(GOOD)), &[GOOD]).await;
    }

    #[tokio::test]
    async fn bytes_that_are_not_utf8_are_damage() {
        let mut client = b"Content-Length: 2\r\n\r\n\xff\xfe".to_vec();
        client.extend_from_slice(framed(GOOD).as_bytes());
        let messages = passed(&client).await;
        assert!(messages[0].contains("-32700") && messages[1] == GOOD, "{messages:#?}");
    }

    #[tokio::test]
    async fn nothing_is_read_after_exit_and_half_a_message_is_none() {
        let exit = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        check(&(framed(exit) + &framed(GOOD)), &[exit]).await;
        check("Content-Length: 50\r\n\r\n{}", &[]).await;
    }
}

use serde_json::json;

use super::*;

fn event(name: &str, body: Value) -> Value {
    json!({ "seq": 1, "type": "event", "event": name, "body": body })
}

fn response(command: &str, body: Value) -> Value {
    json!({ "seq": 1, "type": "response", "request_seq": 1, "success": true, "command": command, "body": body })
}

fn stopped(session: &mut Session) -> Option<Told> {
    session.heard(&event("stopped", json!({ "reason": "exception", "threadId": 1, "text": "AcceleratorError" })))
}

/// As debugpy 1.8.22 answers on Python 3.11.
const CHAIN: &str = r#"  File "/home/dev/proj/data.py", line 6, in load
    json.loads(x)
json.decoder.JSONDecodeError: Expecting value: line 1 column 2 (char 1)

The above exception was the direct cause of the following exception:

  File "/home/dev/proj/train.py", line 8, in step
    loss = model(x)
           ^^^^^^^^
  File "/home/dev/proj/train.py", line 12, in <module>
    step()
  File "/usr/lib/python3.11/runpy.py", line 88, in _run_code (Current frame)
    exec(code, run_globals)
torch.AcceleratorError: CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported

"#;

fn info(mode: &str, text: &str) -> Value {
    json!({ "exceptionId": "AcceleratorError", "breakMode": mode, "details": { "stackTrace": text } })
}

fn stack() -> Value {
    let frame = |name: &str, path: &str, line: u32, column: u32, end: u32| json!({ "id": line, "name": name, "line": line, "column": column, "endColumn": end, "source": { "path": path } });
    json!({ "stackFrames": [
        frame("step", "/home/dev/proj/train.py", 8, 12, 20),
        frame("<module>", "/home/dev/proj/train.py", 12, 1, 7),
    ] })
}

/// The links, one a line: `Type: message` and its frames outermost first as `file:line:column-end function`.
fn shown(exception: &Exception) -> String {
    let mut lines = vec![format!("{} in {}", exception.hook, exception.thread)];
    for link in &exception.chain {
        lines.push(format!("{}: {:?} {}", link.type_name, link.message, link.relation.as_deref().unwrap_or("last")));
        lines.extend(link.frames.iter().map(|frame| {
            let columns = frame.column.zip(frame.end_column).map(|(from, to)| format!(":{from}-{to}"));
            let source = frame.source.as_deref().unwrap_or("");
            format!("  {}:{}{} {} | {source}", frame.file, frame.line, columns.unwrap_or_default(), frame.function)
        }));
    }
    lines.join("\n")
}

#[test]
fn what_it_stands_at_becomes_an_event_as_the_hook_writes_it() {
    let mut session = Session::default();
    assert_eq!(stopped(&mut session), Some(Told::AtException { thread: 1 }));
    assert_eq!(session.answered(&response("exceptionInfo", info("unhandled", CHAIN))), None);
    let Some(Told::Uncaught(exception)) = session.answered(&response("stackTrace", stack())) else {
        panic!("no exception")
    };
    insta::assert_snapshot!(shown(&exception), @r#"
    debugger in MainThread
    json.decoder.JSONDecodeError: "Expecting value: line 1 column 2 (char 1)" cause
      /home/dev/proj/data.py:6 load | json.loads(x)
    torch.AcceleratorError: "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported" last
      /usr/lib/python3.11/runpy.py:88 _run_code | exec(code, run_globals)
      /home/dev/proj/train.py:12:1-7 <module> | step()
      /home/dev/proj/train.py:8:12-20 step | loss = model(x)
    "#);
    // The editor asks for itself, too.
    assert_eq!(session.answered(&response("exceptionInfo", info("unhandled", CHAIN))), None);
}

#[test]
fn pythons_own_order_is_understood_with_and_without_a_stack() {
    const OUTERMOST_FIRST: &str =
        "  File \"/p/a.py\", line 9, in <module>\n    f()\n  File \"/p/a.py\", line 3, in f\n    g()\nE: m\n";
    for stack in [json!({ "stackFrames": [{ "line": 3, "column": 1, "source": { "path": "/p/a.py" } }] }), json!(null)]
    {
        let found = exception::uncaught(&info("unhandled", OUTERMOST_FIRST), &stack, 5).expect("an exception");
        let lines: Vec<u32> = found.chain[0].frames.iter().map(|frame| frame.line).collect();
        assert_eq!(lines, [9, 3]);
    }
}

#[test]
fn an_exception_that_is_caught_or_not_told_is_none() {
    let check = |info: Value| assert_eq!(exception::uncaught(&info, &stack(), 1), None);
    check(info("always", CHAIN));
    check(info("never", CHAIN));
    check(info("unhandled", ""));
    check(json!({ "breakMode": "unhandled" }));
    check(Value::Null);
}

#[test]
fn a_frame_may_have_any_name_and_no_source() {
    const ODD: &str = "  File \"C:\\p\\\", line 1, in x.py\", line 7, in <lambda>\n  [Previous line repeated 3 more times]\nKeyError\n";
    let found = exception::uncaught(&info("userUnhandled", ODD), &Value::Null, 3).expect("an exception");
    assert_eq!((found.chain[0].type_name.as_str(), found.chain[0].message.as_str()), ("KeyError", ""));
    let frame = &found.chain[0].frames[0];
    assert_eq!(
        (frame.file.as_str(), frame.line, frame.function.as_str()),
        ("C:\\p\\\", line 1, in x.py", 7, "<lambda>")
    );
    assert_eq!((frame.path.as_ref(), frame.source.as_ref()), (Some(&frame.file), None));
    assert_eq!(found.thread, "Thread-3");
}

#[test]
fn a_question_that_is_refused_is_answered_all_the_same() {
    let mut session = Session::default();
    stopped(&mut session);
    let refused = json!({ "type": "response", "success": false, "command": "stackTrace", "message": "gone" });
    assert_eq!(session.answered(&refused), None);
    let told = session.answered(&response("exceptionInfo", info("unhandled", CHAIN)));
    assert!(matches!(told, Some(Told::Uncaught(_))), "{told:?}");
}

#[test]
fn events_tell_the_life_of_the_program() {
    let mut session = Session::default();
    let mut heard = |name: &str, body: Value| session.heard(&event(name, body));
    assert_eq!(
        heard("process", json!({ "systemProcessId": 42, "name": "train.py" })),
        Some(Told::Process { pid: 42, name: "train.py".to_owned() })
    );
    assert_eq!(heard("process", json!({ "name": "train.py" })), None);
    assert_eq!(heard("stopped", json!({ "reason": "breakpoint", "threadId": 1 })), None);
    assert_eq!(heard("stopped", json!({ "reason": "exception" })), None);
    assert_eq!(heard("continued", json!({ "threadId": 1 })), Some(Told::WentOn));
    assert_eq!(heard("exited", json!({ "exitCode": -9 })), Some(Told::Exited { code: -9 }));
    assert_eq!(heard("terminated", Value::Null), Some(Told::Terminated));
    assert_eq!(heard("debugpyAttach", json!({})), None);
    assert_eq!(session.heard(&json!({ "type": "request", "command": "runInTerminal" })), None);
    assert_eq!(session.heard(&json!([])), None);
}

#[test]
fn the_programs_output_is_a_log_and_the_debuggers_is_not() {
    let mut session = Session::default();
    for (category, text) in
        [("stderr", "a.cu:1: f: Assert"), ("stderr", "ion\n"), ("stdout", "x\n"), ("telemetry", "t\n")]
    {
        session.heard(&event("output", json!({ "category": category, "output": text })));
    }
    let log = session.log();
    let lines: Vec<(Stream, &str)> = log.lines.iter().map(|line| (line.stream, line.text.as_str())).collect();
    assert_eq!(lines, [(Stream::Stderr, "a.cu:1: f: Assertion"), (Stream::Stdout, "x")]);
}

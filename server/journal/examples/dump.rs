//! Prints a launch journal: `dump FILE [HOW MANY OF THE LAST CALLS]`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = arguments.first() else {
        eprintln!("usage: dump FILE [HOW MANY OF THE LAST CALLS]");
        return ExitCode::from(2);
    };
    let last = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(40);
    let journal =
        match std::fs::read(path).map_err(|error| error.to_string()).and_then(|bytes| cublame_journal::read(&bytes)) {
            Ok(journal) => journal,
            Err(error) => {
                eprintln!("{path}: {error}");
                return ExitCode::FAILURE;
            }
        };
    print(&journal, last);
    ExitCode::SUCCESS
}

fn print(journal: &cublame_journal::Journal, last: usize) {
    println!(
        "pid {} python {}.{} frames {:?} calls {} lost {} kept {} recording {}",
        journal.pid,
        journal.python >> 8,
        journal.python & 255,
        journal.frame_state,
        journal.newest,
        journal.lost,
        journal.calls.len(),
        journal.recording
    );
    for row in &journal.graphs {
        let name = journal.kernel(row.kernel).and_then(|kernel| kernel.name.as_deref()).unwrap_or("");
        println!("graph {row:x?} {:.60} {}", name, innermost(journal, row.stack));
    }
    for call in journal.calls.iter().skip(journal.calls.len().saturating_sub(last)) {
        let kernel = journal.kernel(call.kernel);
        println!(
            "{:6} {:?} result {:?} stream {} thread {} reach {} handle {:x} grid {:?} block {:?} kernel {:x} {:.70} | {}",
            call.number,
            call.kind,
            call.result,
            call.stream,
            journal.thread(call.thread).map_or(0, |thread| thread.system_number),
            call.reach,
            call.handle,
            call.grid,
            call.block,
            kernel.map_or(0, |kernel| kernel.handle),
            kernel.and_then(|kernel| kernel.name.as_deref()).unwrap_or(""),
            innermost(journal, call.stack)
        );
    }
    if let Some(error) = &journal.first_error {
        println!("first error {error:?} | {}", innermost(journal, error.stack));
    }
}

/// The three innermost frames.
fn innermost(journal: &cublame_journal::Journal, stack: u32) -> String {
    let frames = journal.frames(stack);
    let shown: Vec<String> = frames
        .iter()
        .rev()
        .take(3)
        .map(|frame| {
            let file = frame.file.rsplit('/').next().unwrap_or_default();
            let line = frame.location.map_or(0, |location| location.line);
            format!("{file}:{line} {}", frame.function)
        })
        .collect();
    format!("({}) {}", frames.len(), shown.join(" < "))
}

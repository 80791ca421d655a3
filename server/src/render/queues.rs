//! The streams of a run as a table for a terminal.

use std::fmt::Write;

use cublame_core::Sources;
use cublame_core::journal::live::{Queue, Row, State, queues};
use cublame_core::run::Run;
use cublame_journal::Journal;

use super::terminal::{Style, plain};

/// Everything of a run. `now` is CLOCK_MONOTONIC in nanoseconds, by which ages are told while the run goes on.
pub fn render(
    run: &Run,
    live: bool,
    journals: &[Journal],
    sources: &Sources,
    rows: usize,
    now: u64,
    style: Style,
) -> String {
    let mut text = heading(run, live) + "\n";
    for journal in journals {
        let _ = writeln!(text, "\nprocess {}: {} calls", journal.pid, journal.newest);
        if let Some(error) = &journal.first_error {
            let _ = writeln!(text, "  {} returned the first error, {}", error.call, error.code);
        }
        // After the end, ages are counted back from the newest call.
        let newest = journal.calls.last().map_or(0, |call| call.time);
        let now = if live { now } else { newest };
        for queue in queues(journal, sources, rows) {
            text.push_str(&table(&queue, now, &run.cwd, style));
        }
    }
    text
}

/// What is run, how, and whether it still is.
pub fn heading(run: &Run, live: bool) -> String {
    let state = if live { "running" } else { "ended" };
    format!("{}  mode {}, {state}  {}", run.id, run.mode.name(), plain(&run.argv.join(" ")))
}

fn table(queue: &Queue, now: u64, cwd: &str, style: Style) -> String {
    let open = match queue.open {
        0 => "everything is done".to_owned(),
        1 => "1 call is open".to_owned(),
        count => format!("{count} calls are open"),
    };
    let mut text = format!("\n  {}: {open}\n", queue.stream);
    let cells: Vec<[String; 4]> = queue.rows.iter().map(|row| cells(row, now, cwd)).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (states, ages) = (width(0), width(1));
    let kernels = width(2).min(style.width.saturating_sub(states + ages + 40).max(24));
    for (row, [state, age, what, place]) in queue.rows.iter().zip(&cells) {
        let what: String = what.chars().take(kernels).collect();
        let line = format!("    {state:<states$}  {age:>ages$}  {what:<kernels$}  {place}");
        let line = line.trim_end();
        let _ = match row.state {
            State::Running if style.colour => writeln!(text, "\x1b[1m{line}\x1b[0m"),
            State::Done if style.colour => writeln!(text, "\x1b[2m{line}\x1b[0m"),
            _ => writeln!(text, "{line}"),
        };
    }
    text
}

fn cells(row: &Row, now: u64, cwd: &str) -> [String; 4] {
    let state = match row.count {
        1 => row.state.word().to_owned(),
        count => format!("{} x{count}", row.state.word()),
    };
    let place = row.place.as_ref().map_or_else(String::new, |place| {
        let file = place.file.strip_prefix(cwd).map_or(place.file.as_str(), |rest| rest.trim_start_matches('/'));
        let function = place.function.as_deref().map(|function| format!(" in {function}")).unwrap_or_default();
        plain(&format!("{file}:{}{function}", place.line))
    });
    [state, age(now.saturating_sub(row.time)), plain(&row.what), place]
}

/// `12 ms`, `3.4 s`, `12:05 min`.
fn age(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds / 1_000_000;
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds / 100 % 10),
        _ => format!("{}:{:02} min", milliseconds / 60_000, milliseconds / 1_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let told = [999_999_999, 1_000_000_000, 59_990_000_000, 725_000_000_000].map(age);
        assert_eq!(told, ["999 ms", "1.0 s", "59.9 s", "12:05 min"]);
    }
}

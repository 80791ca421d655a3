//! Many threads write at once, somebody reads all the while, and no byte makes the reader panic or loop.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use cublame_journal::write::{Call, CodeKey, CodeText, pack_block, pack_grid};
use cublame_journal::{FrameState, Journal, Kind, Shape, Writer, read};
use proptest::prelude::*;

const TINY: Shape = Shape { rows: [64, 256, 64, 2048, 64, 64, 64, 64, 64] };

fn new(shape: Shape) -> (&'static [AtomicU64], Writer) {
    let words: &'static [AtomicU64] = Box::leak((0..shape.words()).map(|_| AtomicU64::new(0)).collect());
    let writer = Writer::on(words, shape, 4711, 10, 20).unwrap();
    (words, writer)
}

fn bytes(words: &[AtomicU64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect()
}

/// A call of which every field follows from its number.
fn call_of(number: u64, thread: u16) -> Call {
    let low = number as u32;
    Call {
        kind: Kind::Kernel,
        flags: 0,
        time: number.wrapping_mul(3),
        kernel: low.wrapping_mul(5),
        stack: low.wrapping_mul(7),
        stream: (low.wrapping_mul(11) & 0xffff) as u16,
        thread,
        grid: pack_grid(low.wrapping_mul(13), low & 0xffff, 3),
        block: pack_block(low & 0x3ff, 2, 1),
    }
}

fn check(journal: &Journal) {
    for call in &journal.calls {
        let low = call.number as u32;
        assert_eq!(call.time, call.number.wrapping_mul(3));
        assert_eq!((call.kernel, call.stack), (low.wrapping_mul(5), low.wrapping_mul(7)));
        assert_eq!(call.stream, (low.wrapping_mul(11) & 0xffff) as u16);
        assert_eq!((call.grid, call.block), ([low.wrapping_mul(13), low & 0xffff, 3], [low & 0x3ff, 2, 1]));
    }
    assert!(journal.calls.windows(2).all(|pair| pair[0].number < pair[1].number));
}

#[test]
fn rows_are_whole_while_the_ring_turns() {
    let (words, writer) = new(TINY);
    let (threads, each) = (8, 20_000);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..threads)
            .map(|system_number| {
                let writer = &writer;
                scope.spawn(move || {
                    let thread = writer.thread(system_number).unwrap();
                    for _ in 0..each {
                        let number = writer.enter(thread);
                        writer.record(number, &call_of(number, thread));
                        writer.leave(thread);
                        writer.returned(number, 0);
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Relaxed) || seen == 0 {
                check(&read(&bytes(words)).unwrap());
                seen += 1;
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Relaxed);
        reader.join().unwrap();
    });
    let journal = read(&bytes(words)).unwrap();
    check(&journal);
    assert_eq!(journal.newest, u64::from(threads) * each);
    // A call is in the ring or was counted as lost, and only then.
    assert!(journal.calls.len() as u64 + journal.lost >= 64, "{} kept, {} lost", journal.calls.len(), journal.lost);
    assert!(journal.calls.iter().all(|call| call.result == Some(0)));
}

#[test]
fn equal_stacks_have_one_number_whoever_adds_them() {
    let (words, writer) = new(Shape { rows: [64, 4096, 256, 1 << 14, 64, 64, 64, 64, 64] });
    writer.interpreter(0x30c, FrameState::Verified);
    let table = [0x80 | 13 << 3, 0];
    let stack_of = |seed: u32| {
        (0..6).fold(0, |parent, level| {
            let line = 1 + (seed >> level) % 7;
            let name = format!("f{level}");
            let key = CodeKey { address: u64::from(line * 10 + level), identity: 9 };
            let code = writer.code(key, || CodeText {
                file: b"a.py",
                name: name.as_bytes(),
                line_table: &table,
                first_line: line,
            });
            writer.stack(parent, code, 0)
        })
    };
    let all: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| (0..200).map(stack_of).collect())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    let journal = read(&bytes(words)).unwrap();
    for (seed, stack) in (0u32..).zip(&all[0]) {
        let frames = journal.frames(*stack);
        let lines: Vec<u32> = frames.iter().map(|frame| frame.location.unwrap().line).collect();
        assert_eq!(lines, (0..6).map(|level| 1 + (seed >> level) % 7).collect::<Vec<_>>());
        assert!(
            frames
                .iter()
                .enumerate()
                .all(|(level, frame)| frame.function == format!("f{level}") && frame.file == "a.py")
        );
    }
}

#[test]
fn a_reused_address_is_another_code_object() {
    let (words, writer) = new(TINY);
    writer.interpreter(0x30c, FrameState::Verified);
    let table = [0x80 | 13 << 3, 0];
    let add = |identity, name: &'static [u8]| {
        let key = CodeKey { address: 0x7f00, identity };
        let code = writer.code(key, || CodeText { file: b"<made>", name, line_table: &table, first_line: 1 });
        writer.stack(0, code, 0)
    };
    let (first, second) = (add(1, b"first"), add(2, b"second"));
    assert_eq!(add(1, b"never read"), first);
    let journal = read(&bytes(words)).unwrap();
    assert_eq!(journal.frames(first)[0].function, "first");
    assert_eq!(journal.frames(second)[0].function, "second");
}

#[test]
fn full_tables_give_no_entry_and_no_harm() {
    let (words, writer) = new(Shape { rows: [8, 4, 4, 16, 4, 4, 4, 4, 64] });
    for key in 0..50 {
        let text =
            CodeText { file: b"some/long/path/of/a/file.py", name: b"name", line_table: &[1; 40], first_line: 1 };
        let code = writer.code(CodeKey { address: key + 1, identity: key }, || text);
        writer.stack(0, code, key as u32);
        let kernel = writer.kernel(key + 1, 0);
        writer.name_kernel(kernel, b"_Z6kernelv");
        writer.stream(1, 1 << 40 | key << 8, true);
        writer.graph(cublame_journal::GraphKind::Captured, key, key, 0, 0, 0, 0);
    }
    assert_eq!((0..10).filter_map(|number| writer.thread(number)).count(), 3);
    let journal = read(&bytes(words)).unwrap();
    assert_eq!(journal.graphs.len(), 4);
    assert_eq!(journal.frames(3).len(), 1);
}

#[test]
fn a_million_calls_fit_64_mib() {
    assert_eq!(Shape::DEFAULT.rows(cublame_journal::layout::Table::Calls), 1 << 20);
    assert!(Shape::DEFAULT.bytes() <= 64 << 20, "{}", Shape::DEFAULT.bytes());
}

#[test]
fn another_process_cannot_claim_it() {
    let (words, _first) = new(TINY);
    assert!(Writer::on(words, TINY, 4712, 0, 0).is_none());
}

/// Reads, and asks for everything that the result refers to.
fn read_all(bytes: &[u8]) {
    let Ok(journal) = read(bytes) else { return };
    for call in &journal.calls {
        let _ = (
            journal.frames(call.stack),
            journal.kernel(call.kernel),
            journal.stream(call.stream),
            journal.thread(call.thread),
        );
        assert!(journal.call(call.number).is_some());
    }
    for stack in 0..300 {
        let _ = journal.frames(stack);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_journals_are_read(damage in prop::collection::vec((0usize..3000, any::<u64>()), 0..200), length in 0usize..40_000) {
        let (words, writer) = new(TINY);
        writer.interpreter(0x30b, FrameState::Verified);
        for number in 1..40u32 {
            let code = writer.code(CodeKey { address: number.into(), identity: 0 }, || CodeText { file: b"a.py", name: b"f", line_table: &[0xf0, 3, 1, 2, 3], first_line: number });
            let stack = writer.stack(number / 2, code, number);
            let entered = writer.enter(1);
            writer.record(entered, &Call { stack, ..call_of(entered, 1) });
        }
        // The beginning of the header is kept, so that the rest is read.
        let mut bytes = bytes(words);
        for (word, value) in damage {
            let at = (16 + word * 8) % (bytes.len() - 8);
            if at >= 16 {
                bytes[at / 8 * 8..][..8].copy_from_slice(&value.to_ne_bytes());
            }
        }
        bytes.truncate(length.max(16));
        read_all(&bytes);
    }

    #[test]
    fn any_line_table_is_decoded(version in 0x309u32..0x30f, table in prop::collection::vec(any::<u8>(), 0..200), first in any::<u32>(), offset in 0u32..1000) {
        let _ = cublame_journal::lines::locate(version, &table, first, offset);
    }
}

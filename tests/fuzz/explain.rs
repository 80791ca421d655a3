//! One log, all the way: condensed, read, blamed with some sources, advised on, and written for people and machines.

use cublame::render::{markdown, terminal};
use cublame_core::advice::advise;
use cublame_core::blame::Reading;
use cublame_core::catalog::{Language, Texts};
use cublame_core::evidence::Crash;
use cublame_core::log::{Condenser, Stream};
use cublame_core::run::Exit;
use cublame_core::source::Source;
use cublame_core::verdict::Verdicts;
use cublame_core::{Evidence, Sources};
use fastrand::Rng;

use crate::mutate;
use crate::seeds::Seeds;

/// How often the product asks for further sources.
const ROUNDS: usize = 4;
/// Files that a case finds: a real trace names a few, and a mutated one may name thousands.
const MOST_FILES: usize = 12;

/// Returns the bytes that were read: of the log, and of the sources that it made the product ask for.
pub fn explain(log: &[u8], seeds: &Seeds, random: &mut Rng) -> usize {
    let evidence = evidence(log, random);
    let reading = Reading::of(&evidence);
    let mut sources = Sources::new(vec!["/home/dev/proj".to_owned()]);
    let (mut found, mut read) = (0, log.len());
    for _ in 0..ROUNDS {
        let wanted = reading.wanted(&sources);
        if wanted.is_empty() {
            break;
        }
        for name in wanted {
            assert!(!sources.asked(&name), "{name} is wanted again");
            let source = if found < MOST_FILES { source(&name, seeds, random) } else { None };
            found += usize::from(source.is_some());
            read += source.as_ref().map_or(0, |source| source.text.len());
            sources.insert(name, source);
        }
    }
    let texts = Texts::get(if random.bool() { Language::English } else { Language::SimplifiedChinese });
    let mut verdicts = reading.blame(&sources, texts);
    for verdict in &mut verdicts {
        verdict.advice = advise(verdict, &evidence, texts);
        std::hint::black_box(markdown::hover(verdict, texts));
    }
    let style = terminal::Style { colour: random.bool(), width: random.usize(1..200) };
    std::hint::black_box(terminal::render(&verdicts, &sources, style));
    let written = serde_json::to_string(&Verdicts::new(verdicts));
    assert!(written.is_ok_and(|text| serde_json::from_str::<Verdicts>(&text).is_ok()), "the JSON is not read again");
    read
}

fn evidence(log: &[u8], random: &mut Rng) -> Evidence {
    let streams = [Stream::Mixed, Stream::Stdout, Stream::Stderr];
    let mut condenser = Condenser::new();
    let mut rest = log;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(random.usize(1..=rest.len()));
        condenser.feed(streams[random.usize(..streams.len())], piece);
        rest = after;
    }
    let crashes = if random.u8(..8) == 0 {
        vec![Crash { pid: 7, text: String::from_utf8_lossy(&log[..log.len().min(4096)]).into_owned() }]
    } else {
        Vec::new()
    };
    let exit = random.bool().then(|| Exit { code: None, signal: Some(random.i32(1..32)) });
    Evidence { log: Some(condenser.finish()), crashes, exit, blocking: random.bool(), ..Evidence::default() }
}

/// The program of that name, else any one, sometimes damaged, sometimes none.
fn source(name: &str, seeds: &Seeds, random: &mut Rng) -> Option<Source> {
    let own = seeds.programs.iter().find(|(known, _)| name.ends_with(known.as_str()));
    let (_, text) = match own {
        Some(own) if random.u8(..4) > 0 => own,
        _ => seeds.programs.get(random.usize(..seeds.programs.len()))?,
    };
    let text = match random.u8(..6) {
        0 => return None,
        1 | 2 => {
            let mut bytes = text.clone().into_bytes();
            mutate::damage(&mut bytes, &seeds.logs, random);
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => text.clone(),
    };
    Some(Source { path: format!("/home/dev/proj/{}", name.trim_start_matches('/')), text: text.into() })
}

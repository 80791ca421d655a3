//! What loggers, launchers, terminals and people put before a line, taken off again.
//!
//! A rank tag, a container's clock, a logger's head, a markdown quote: they nest in any order, so they are peeled one
//! after the other. A file and line inside such a head is never a frame. What they tell (rank, level) is kept.

use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

use crate::log::{Log, Stream};
use crate::pattern::{pattern, patterns};

/// A line without what stood before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean {
    /// Index into `Log::lines`.
    pub line: usize,
    pub stream: Stream,
    pub rank: Option<u32>,
    /// The process that a prefix names, such as `Worker_TP2` or `[rank1]`: lines of one speaker belong together.
    pub speaker: String,
    pub level: Option<Level>,
    pub text: String,
    pub repeats: u64,
}

/// What a logger calls its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Note,
    Warning,
    Error,
}

/// The groups in which a prefix tells a rank.
const RANKS: [&str; 2] = ["rank", "own_rank"];

/// Prefixes nest, but no deeper than this.
const DEPTH: usize = 8;

/// The lines of a log without their prefixes. A line that several were pasted into becomes several.
pub fn clean(log: &Log) -> Vec<Clean> {
    let mut cleaned = Vec::with_capacity(log.lines.len());
    for (line, kept) in log.lines.iter().enumerate() {
        for segment in kept.text.split('\r') {
            let segment = without_escapes(segment);
            for part in super::pasted::separate(&segment) {
                let mut clean = Clean {
                    line,
                    stream: kept.stream,
                    rank: None,
                    speaker: String::new(),
                    level: None,
                    text: part.into_owned(),
                    repeats: kept.repeats,
                };
                peel(&mut clean);
                cleaned.push(clean);
            }
        }
    }
    cleaned
}

fn peel(clean: &mut Clean) {
    for _ in 0..DEPTH {
        let Some((head, captures)) = PREFIXES.first(&clean.text) else { return };
        let rest = captures.get(0).map_or(0, |whole| whole.end());
        if let Some(rank) = RANKS.iter().find_map(|name| captures.name(name)?.as_str().parse().ok()) {
            clean.rank.get_or_insert(rank);
        }
        if let Some(level) = captures.name("level").and_then(|level| Level::of(level.as_str())) {
            clean.level = clean.level.max(Some(level));
        }
        if let Some(speaker) = captures.name("speaker") {
            clean.speaker.push_str(speaker.as_str());
        }
        let mut text = clean.text[rest..].to_owned();
        if head.boxed {
            text.truncate(text.trim_end().trim_end_matches('│').trim_end().len());
        }
        clean.text = text;
    }
}

impl Level {
    fn of(word: &str) -> Option<Self> {
        match word.bytes().next()?.to_ascii_uppercase() {
            b'E' | b'F' | b'C' => Some(Level::Error),
            b'W' => Some(Level::Warning),
            b'I' | b'D' | b'T' | b'S' => Some(Level::Note),
            _ => None,
        }
    }
}

struct Prefix {
    pattern: &'static str,
    /// The line ends with the box's right border.
    boxed: bool,
}

struct Prefixes {
    set: RegexSet,
    each: Vec<(Prefix, Regex)>,
}

impl Prefixes {
    fn first<'t>(&self, text: &'t str) -> Option<(&Prefix, Captures<'t>)> {
        self.set.matches(text).into_iter().find_map(|index| {
            let (prefix, regex) = self.each.get(index)?;
            let captures = regex.captures(text)?;
            captures.get(0).is_some_and(|whole| !whole.is_empty()).then_some((prefix, captures))
        })
    }
}

const fn plain(pattern: &'static str) -> Prefix {
    Prefix { pattern, boxed: false }
}

static PREFIXES: LazyLock<Prefixes> = LazyLock::new(|| {
    let all = [
        // torchrun and torch's own rank filter: `[rank0]: `, `[rank0]:[E...`, `[default0]:`
        plain(r"^(?P<speaker>\[(?:rank|default)(?P<rank>\d+)\]):? ?"),
        // mpirun --tag-output, and srun --label before something that a log line begins with
        plain(r"^(?P<speaker>\[\d+,(?P<rank>\d+)\])<(?:stdout|stderr)>: ?"),
        plain(r"^ {0,3}(?P<speaker>(?P<rank>\d{1,5}): )"),
        plain(r"^[Rr]ank[ _:]?(?P<rank>\d+): ?"),
        plain(r"^\([Rr]ank ?(?P<rank>\d+)\):? ?"),
        // vLLM, Ray: `(Worker_TP2 pid=12) `, `(VllmWorker rank=3 pid=226) `, `(EngineCore pid=306) `, `(pid=9, ip=10.0.0.1) `
        plain(
            r"^(?P<speaker>\((?:[A-Za-z][\w:.-]*?(?:_?(?:TP|Rank|rank)_?(?P<rank>\d+)\w*)?[ ,]+)?(?:rank=(?P<own_rank>\d+) )?(?:pid|ip)=[^()]*\)) ?",
        ),
        // SGLang: `[2024-10-16 07:40:30 TP2] `
        plain(r"^(?P<speaker>\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:DP\d+ )?TP(?P<rank>\d+)(?: \w+)*\]) ?"),
        // pdsh and deepspeed over several hosts: `worker-1: `, `10.0.0.1: `
        plain(r"^(?P<speaker>(?:[a-z][a-z.-]*[-.]?\d+|\d+\.\d+\.\d+\.\d+)): "),
        plain(r"^\[\d+\] "),
        // containers and CI: `2024-07-22T10:38:57.218681532+08:00 `, `trainer-1  | `, `[pod/x/y] `
        plain(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d) ?(?:(?:stdout|stderr) [FP] )?"),
        plain(r"^\[pod/[^\]\s]+\] ?"),
        plain(r"^(?P<speaker>[A-Za-z][\w.-]*[-_]\d+)\s+\| ?"),
        // journald and syslog: `Oct 04 15:02:41 host1 app-start[394]: `; dmesg: `[12345.678] `
        plain(r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w@./-]+(?:\[\d+\])?: "),
        plain(r"^\[ *\d+\.\d{6}\] "),
        // glog and XLA: `E1120 10:59:55.894873   35984 file.cc:3067] `, `[E1206 18:44:16.99 ProcessGroupNCCL.cpp:621] `,
        // `[W socket.cpp:464] `, `W0401 10:01:03.000000 700 site-packages/.../api.py:897] `
        plain(r"^\[?(?P<level>[EWIF])\d{3,4} \d\d:\d\d:\d\d(?:\.\d+)?\s+(?:\d+\s+)?[^\]\s]*:\d+\] ?"),
        plain(r"^\[(?P<level>[EWIF]) [\w./-]+:\d+\] ?"),
        plain(r"^\[(?:[EWIF]\d* )?\d\d:\d\d:\d\d(?:\.\d+)? [\w./-]+:\d+\] ?"),
        plain(r"^\[PG [^\]]*?\b[Rr]ank (?P<rank>\d+)\] ?"),
        plain(r"^\[[Rr]ank:? (?P<rank>\d+)\]:? ?"),
        plain(r"^\[c10d\] ?"),
        // TensorFlow: `2024-11-20 10:59:56.408862: E external/xla/...:663] `
        plain(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: (?P<level>[EWIF]) [^\]\s]*:\d+\] ?"),
        // vLLM: `ERROR 09-27 06:46:46 engine.py:157] `, `ERROR 02-28 08:53:58 [x.py:880] `
        plain(r"^(?P<level>ERROR|WARNING|INFO|DEBUG|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./<>-]+:\d+\] ?"),
        // loguru: `2024-02-29 03:40:55.235 | INFO     | module:function:242 - `
        plain(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+ \| (?P<level>[A-Z]+) *\| [^\n]*?:\d+ - "),
        // python logging in its usual shapes, deepspeed's among them
        plain(
            r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+\] (?:\[(?P<level>[A-Z]+)\] )?(?:\[[^\]]*:\d+(?::[^\]]*)?\] ?)*(?:\[[Rr]ank (?P<rank>\d+)\] ?)?",
        ),
        plain(r"^\[\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d+)?\] ?"),
        plain(
            r"^\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?,? ?(?:[-|:]? ?(?:[\w.]+ ?[-|:] ?)?\[?(?P<level>ERROR|WARNING|WARN|INFO|DEBUG|CRITICAL|FATAL)\]?(?: ?[-|:] ?| +)(?:[\w.]+:\d+ ?[-|:] ?)?|[-|:] |)",
        ),
        plain(r"^(?P<level>ERROR|WARNING|INFO|DEBUG|CRITICAL):[\w.-]+: ?"),
        plain(r"^(?P<level>ERROR|WARNING|INFO|DEBUG|CRITICAL|WARN):? {2,}"),
        plain(r"^\[(?P<level>ERROR|WARNING|WARN|INFO|DEBUG|CRITICAL|FATAL)\]:? ?"),
        // hydra: `[2024-07-22 10:38:57,218][root][ERROR] - `; transformers: `[INFO|trainer.py:2134] 2024-07-22 10:38:57,218 >> `
        plain(r"^\[[\w.]+\]\[(?P<level>[A-Z]+)\] - "),
        plain(r"^\[(?P<level>[A-Z]+)\|[^\]\s]+\] ?(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ )?>> "),
        plain(r"^\d\d:\d\d:\d\d(?:[.,]\d+)? (?:(?P<level>ERROR|WARNING|WARN|INFO|DEBUG|CRITICAL)\b:? ?)?"),
        // rich's logging handler: `[15:58:29] WARNING  `
        plain(r"^\[\d\d:\d\d:\d\d\] (?P<level>[A-Z]+) +"),
        // pytest's error lines, markdown quotes and comments
        plain(r"^E   "),
        plain(r"^>(?: |$)"),
        plain(r"^#{1,4} "),
        // the frames of exception groups: `  | `, `    +-+---------------- 1 ----------------`
        plain(r"^\s+\| "),
        plain(r"^\s+\|$"),
        plain(r"^\s*\+[-+]*-{8,} (?:\d+|\.\.\.) -{8,}$"),
        plain(r"^\s*\+-{8,}$"),
        plain(r"^\s+\+ "),
        // pods and TUIs draw a box around a log: only round a line that a logger began, a traceback of rich is a box too
        Prefix {
            pattern: r"^│ (?:(?P<level>ERROR|WARNING|INFO|DEBUG|CRITICAL)(?: \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./<>-]+:\d+\] ?|:? +))",
            boxed: true,
        },
        Prefix { pattern: r"^│ \d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S* ?", boxed: true },
        // tqdm: `  0%|     | 0/70 [00:00<?, ?it/s]` glued to what follows, `12it [00:01, 3.4it/s]`
        plain(r"^[^\n|]{0,80}?\d+%\|[^|]*\| *\d[^\s/]*/\d\S* \[[^\]]*\]"),
        plain(r"^\d+it \[[^\]]*\] ?"),
    ];
    let set = patterns(all.iter().map(|prefix| prefix.pattern));
    let each = all
        .into_iter()
        .map(|prefix| {
            let regex = pattern(prefix.pattern);
            (prefix, regex)
        })
        .collect();
    Prefixes { set, each }
});

/// Colours, cursor movements and titles taken out (ECMA-48).
fn without_escapes(text: &str) -> String {
    let text = &LOST_ESCAPES.replace_all(text, "");
    if !text.contains('\u{1b}') {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('[') => while characters.next().is_some_and(|next| !('@'..='~').contains(&next)) {},
            Some(']') => {
                while let Some(next) = characters.next() {
                    if next == '\u{7}' {
                        break;
                    }
                    if next == '\u{1b}' {
                        characters.next_if_eq(&'\\');
                        break;
                    }
                }
            }
            Some('(' | ')' | '#' | '%') => {
                characters.next();
            }
            _ => {}
        }
    }
    out
}

/// Colours whose escape character was lost in a paste, or is spelled out.
static LOST_ESCAPES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:\^\[|\\u001[bB]|\\x1[bB]|\\033|␛)?\[(?:\d{1,3};)*\d{1,3}m|^(?:\d{1,3};)+\d{1,3}m"));

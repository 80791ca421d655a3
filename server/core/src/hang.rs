//! A run that said nothing for a while, and where each of its processes stood when it was asked.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::parse::{Frame, stacks};
use crate::pattern::pattern;

/// `hang.json`: written when a run is silent, taken back when it goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hang {
    /// For how many seconds nothing had come.
    pub silent: u64,
    pub processes: Vec<Standing>,
}

/// One process that was asked for its stacks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    pub pid: u32,
    /// What faulthandler wrote; empty where no answer came.
    pub stacks: String,
}

impl Standing {
    /// The frames of the main thread, outermost first.
    pub fn frames(&self) -> Vec<Frame> {
        // faulthandler names the newest thread first (CPython, `_Py_DumpTracebackThreads`).
        stacks(&self.stacks).pop().unwrap_or_default()
    }
}

/// The collective that a stack waits in: `all_reduce`, `barrier`.
pub fn collective(frames: &[Frame]) -> Option<&str> {
    frames.iter().find(|frame| is_collective(&frame.file))?.function.as_deref()
}

pub fn is_collective(file: &str) -> bool {
    static HOME: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"torch/distributed/(distributed_c10d|_functional_collectives)\.py$"));
    HOME.is_match(&file.replace('\\', "/"))
}

/// The line on which a program drives several GPUs in one process: there blocking launches may wait for each other for
/// ever (pytorch#9163).
pub fn several_gpus_at(source: &str) -> Option<usize> {
    static CALL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[^#]*\bDataParallel\("));
    source.lines().position(|line| CALL.is_match(line)).map(|index| index + 1)
}

/// The process that the others wait for, by its index: the one that is in no collective where others are, or in another
/// one than most. None where all stand alike.
pub fn odd_one_out(places: &[Option<String>]) -> Option<usize> {
    let count = |place: &Option<String>| places.iter().filter(|other| *other == place).count();
    let outside = places.iter().position(Option::is_none).filter(|_| places.iter().any(Option::is_some));
    let rarest = || {
        let (index, place) = places.iter().enumerate().min_by_key(|(_, place)| count(place))?;
        (count(place) * 2 <= places.len() && count(place) < places.len()).then_some(index)
    };
    outside.or_else(rarest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(places: &[&str], expected: Option<usize>) {
        let places: Vec<Option<String>> =
            places.iter().map(|place| Some((*place).to_owned()).filter(|place| !place.is_empty())).collect();
        assert_eq!(odd_one_out(&places), expected);
    }

    #[test]
    fn the_one_that_is_elsewhere_is_waited_for() {
        check(&["a", "a", "", "a"], Some(2));
        check(&["a", "b", "a"], Some(1));
        check(&["a", "a"], None);
        check(&["a"], None);
        check(&["", ""], None);
    }

    #[test]
    fn one_process_for_several_gpus_is_seen_in_the_source() {
        assert_eq!(several_gpus_at("import torch\nnet = nn.DataParallel(net)\n"), Some(2));
        assert_eq!(several_gpus_at("# DataParallel(net)\nnet = DistributedDataParallel(net)\n"), None);
    }

    #[test]
    fn the_main_thread_is_named_last() {
        let stacks = "Thread 0x01 (most recent call first):\n  File \"/l/threading.py\", line 3 in wait\n\n\
                      Current thread 0x02 (most recent call first):\n  \
                      File \"/s/torch/distributed/distributed_c10d.py\", line 4806 in barrier\n  \
                      File \"/p/train.py\", line 7 in main\n  File \"/p/train.py\", line 9 in <module>\n";
        let frames = Standing { pid: 1, stacks: stacks.to_owned() }.frames();
        assert_eq!(frames.iter().map(|frame| frame.line).collect::<Vec<_>>(), [9, 7, 4806]);
        assert_eq!(collective(&frames), Some("barrier"));
    }
}

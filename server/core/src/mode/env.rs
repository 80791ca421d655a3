//! The env block of a mode: which variables, with which values beside the user's own, and why.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Mode;

/// The variables that cublame may write into a file under version control.
pub const OUR_SHARED_VARIABLES: [&str; 2] = ["CUDA_LAUNCH_BLOCKING", "CUBLAME_MODE"];

/// The variables of `mode` for a process that would otherwise start with `current`.
///
/// A variable whose value would not change is in the block all the same: the block is the whole of what the mode needs.
/// CUDA_LAUNCH_BLOCKING is exactly `1` in blocking mode, since CUDA takes no other value for "on".
/// Trace, core, guard and sanitize are meant to run at their own speed, so they turn a value of `1` into `0`,
/// which CUDA reads as "off" and which, unlike a removal, every tool that takes an env block can write.
/// Mode off leaves the user's value alone, and so does any mode where it is off already.
/// A runner that picks a mode by itself should pick blocking where the user has set `CUDA_LAUNCH_BLOCKING=1`.
pub fn env_block(mode: Mode, os: Os, machine: &Machine, current: &BTreeMap<String, String>) -> EnvBlock {
    let user = UserValues { os, values: current };
    let mut block = EnvBlock::default();
    block.set(
        "CUBLAME_MODE",
        mode.name(),
        Half::Shared,
        "Tells cublame's hook and every tool in which mode the program runs.",
    );
    launch_blocking(mode, &user, &mut block);
    hook(os, machine, &user, &mut block);
    if matches!(mode, Mode::Trace | Mode::Core) {
        tracer(os, machine, &user, &mut block);
    }
    match mode {
        Mode::Core => gpu_core_dump(os, machine, &user, &mut block),
        Mode::Sanitize => allocator_for_sanitizer(&user, &mut block),
        Mode::Off | Mode::Blocking | Mode::Trace | Mode::Guard => {}
    }
    block
}

/// What a mode puts into the environment, in the order in which it is to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EnvBlock {
    pub variables: Vec<Variable>,
    /// What the mode would need and could not have, with the reason; the run goes on without it.
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    pub name: &'static str,
    pub value: String,
    pub half: Half,
    /// One sentence for the user.
    pub why: &'static str,
}

/// Where a variable may be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// In a file under version control.
    Shared,
    /// Only at launch: the value holds a path of this machine, or depends on the environment of the moment.
    Launch,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub name: &'static str,
    pub why: String,
}

/// What this machine can give to a run. Absent parts are left out of the block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// The folder that holds the hook's `sitecustomize.py`, absolute.
    pub hook: Option<String>,
    /// The tracer's shared library, absolute.
    pub tracer: Option<String>,
    /// Where the launch journal goes, in the tracer's words: `memfd:PID:FD,...` of a supervisor, or `run`.
    pub journal: Option<String>,
    /// The run folder, absolute; absent for a run that its first process creates.
    pub run: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Os {
    Linux,
    MacOs,
    Windows,
}

impl Os {
    /// The system that this program was built for.
    pub const HERE: Os = if cfg!(windows) {
        Os::Windows
    } else if cfg!(target_os = "macos") {
        Os::MacOs
    } else {
        Os::Linux
    };

    /// What stands between the folders of a search path.
    pub fn path_separator(self) -> char {
        if self == Os::Windows { ';' } else { ':' }
    }
}

impl EnvBlock {
    /// The half that may stand in a file under version control.
    pub fn shared(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(|variable| variable.half == Half::Shared)
    }

    /// What the hook is asked for beside the mode's own.
    pub fn ask_for(&mut self, memory: bool, anomaly: bool) {
        for (asked, name, why) in [
            (memory, "CUBLAME_MEMORY", "Has the hook record which lines hold the GPU's memory."),
            (anomaly, "CUBLAME_ANOMALY", "Has the hook put torch's anomaly mode in force, without its check for NaN."),
        ] {
            if asked {
                self.set(name, "1", Half::Launch, why);
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|variable| variable.name == name).map(|variable| variable.value.as_str())
    }

    fn set(&mut self, name: &'static str, value: impl Into<String>, half: Half, why: &'static str) {
        self.variables.push(Variable { name, value: value.into(), half, why });
    }

    fn leave_out(&mut self, name: &'static str, why: impl Into<String>) {
        self.left_out.push(LeftOut { name, why: why.into() });
    }
}

/// The user's environment, with the system's own idea of when two names are the same.
struct UserValues<'a> {
    os: Os,
    values: &'a BTreeMap<String, String>,
}

impl UserValues<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let exact = self.values.get(name);
        let found = match self.os {
            Os::Windows => exact
                .or_else(|| self.values.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)),
            Os::Linux | Os::MacOs => exact,
        };
        found.map(String::as_str)
    }
}

fn launch_blocking(mode: Mode, user: &UserValues, block: &mut EnvBlock) {
    const NAME: &str = "CUDA_LAUNCH_BLOCKING";
    match mode {
        Mode::Blocking => block.set(
            NAME,
            "1",
            Half::Shared,
            "Makes every kernel launch wait for its kernel, so that an error surfaces at the call that caused it.",
        ),
        Mode::Trace | Mode::Core | Mode::Guard | Mode::Sanitize if user.get(NAME) == Some("1") => block.set(
            NAME,
            "0",
            Half::Shared,
            "Your environment has it on; this mode finds the line without it and runs at full speed.",
        ),
        Mode::Off | Mode::Trace | Mode::Core | Mode::Guard | Mode::Sanitize => {}
    }
}

fn hook(os: Os, machine: &Machine, user: &UserValues, block: &mut EnvBlock) {
    if let Some(run) = &machine.run {
        block.set(
            "CUBLAME_RUN",
            run,
            Half::Launch,
            "The folder into which every process of this run writes its events.",
        );
    }
    let Some(folder) = &machine.hook else { return };
    if folder.contains(os.path_separator()) {
        let why = format!("the hook's folder `{folder}` holds a `{}`, which separates folders", os.path_separator());
        block.leave_out("PYTHONPATH", why);
        return;
    }
    block.set(
        "PYTHONPATH",
        hook_first(folder, user.get("PYTHONPATH").unwrap_or_default(), os.path_separator()),
        Half::Launch,
        "Puts cublame's sitecustomize before yours (which it then loads), so that Python exceptions are recorded.",
    );
    // PYTEST_PLUGINS is not here: pytest refuses to start without a plugin that it cannot import, as under `python -I` or
    // before Python 3.8. The hook sets it itself, in a process that imports pytest, until pytest has read it.
}

/// An empty element of PYTHONPATH means the working directory; it is written as `.`, which means the same and is visible.
fn hook_first(folder: &str, theirs: &str, separator: char) -> String {
    let mut elements = vec![folder];
    if !theirs.is_empty() {
        let rest = theirs.split(separator).filter(|&element| element != folder);
        elements.extend(rest.map(|element| if element.is_empty() { "." } else { element }));
    }
    elements.join(&separator.to_string())
}

fn tracer(os: Os, machine: &Machine, user: &UserValues, block: &mut EnvBlock) {
    const NAME: &str = "LD_PRELOAD";
    if os != Os::Linux {
        block.leave_out(NAME, "the launch journal exists on Linux only");
        return;
    }
    let Some(library) = &machine.tracer else {
        block.leave_out(NAME, "the tracer's library is not installed on this machine");
        return;
    };
    if library.contains([':', ' ']) {
        let why = format!("the tracer's path `{library}` holds a blank or a colon, which separate libraries");
        block.leave_out(NAME, why);
        return;
    }
    let Some(journal) = &machine.journal else {
        block.leave_out(NAME, "there is no memory for the launch journal");
        return;
    };
    block.set(
        "CUBLAME_JOURNAL",
        journal,
        Half::Launch,
        "Tells the tracer where to write down what the program asks of the GPU.",
    );
    block.set(
        NAME,
        tracer_last(library, user.get(NAME).unwrap_or_default()),
        Half::Launch,
        "Loads the launch journal into the program, after the libraries that you preload yourself.",
    );
}

/// LD_PRELOAD is a list with colons or blanks (ld.so(8)). An older copy of the tracer is replaced: two would count twice.
fn tracer_last(library: &str, theirs: &str) -> String {
    let mut libraries: Vec<&str> = theirs
        .split([':', ' '])
        .filter(|element| !element.is_empty() && file_name(element) != file_name(library))
        .collect();
    libraries.push(library);
    libraries.join(":")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The variables that switch a GPU core dump on (CUDA-GDB manual, "GPU core dump support").
/// The user's own come first: where one of them is set, none of ours is.
fn gpu_core_dump(os: Os, machine: &Machine, user: &UserValues, block: &mut EnvBlock) {
    const ENABLE: &str = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION";
    const FILE: &str = "CUDA_COREDUMP_FILE";
    const FLAGS: &str = "CUDA_COREDUMP_GENERATION_FLAGS";
    const NAME_IN_RUN: &str = "/gpu/%h.%p.gpucore";
    const THEIRS: [&str; 7] = [
        ENABLE,
        FILE,
        FLAGS,
        "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP",
        "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION",
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
        "CUDA_COREDUMP_PIPE",
    ];
    if os != Os::Linux {
        block.leave_out(ENABLE, "GPU core dumps are read on Linux only");
        return;
    }
    let set_by_an_outer_run = user.get(FILE).is_some_and(|file| file.ends_with(NAME_IN_RUN));
    let set_by_the_user = THEIRS.into_iter().find(|name| user.get(name).is_some());
    if let Some(name) = set_by_the_user.filter(|_| !set_by_an_outer_run) {
        block.leave_out(ENABLE, format!("your environment sets {name}, and it stays as you set it"));
        return;
    }
    let Some(run) = &machine.run else {
        block.leave_out(ENABLE, "the run folder that would hold the dump is not known yet");
        return;
    };
    block.set(ENABLE, "1", Half::Launch, "Lets the driver write the GPU's state at the fault; the process ends there.");
    block.set(
        FILE,
        format!("{}{NAME_IN_RUN}", run.trim_end_matches('/')),
        Half::Launch,
        "Puts each process's dump into the run folder (%h is the host, %p the process).",
    );
    block.set(
        FLAGS,
        "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory",
        Half::Launch,
        "Keeps the dump at a few megabytes; the grid table is all that is read.",
    );
}

/// compute-sanitizer sees torch's allocations only one by one, and is wrong about expandable segments (pytorch#196209).
fn allocator_for_sanitizer(user: &UserValues, block: &mut EnvBlock) {
    block.set(
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "1",
        Half::Launch,
        "Gives each tensor an allocation of its own, so that the sanitizer sees an overrun into a neighbour.",
    );
    for name in ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"] {
        let Some(value) = user.get(name).and_then(without_expandable_segments) else { continue };
        block.set(
            name,
            value,
            Half::Launch,
            "Your value with expandable segments off: with them the sanitizer reports false errors.",
        );
    }
}

/// None: nothing to change.
fn without_expandable_segments(conf: &str) -> Option<String> {
    let is_on = |item: &str| {
        let mut halves = item.splitn(2, ':').map(str::trim);
        halves.next() == Some("expandable_segments") && halves.next() != Some("False")
    };
    // A list in brackets holds commas of its own, but none of its pieces is named expandable_segments.
    let items: Vec<&str> = conf.split(',').collect();
    items.iter().any(|item| is_on(item)).then(|| {
        let kept = items.iter().map(|item| if is_on(item) { "expandable_segments:False" } else { item });
        kept.collect::<Vec<_>>().join(",")
    })
}

#[cfg(test)]
mod tests;

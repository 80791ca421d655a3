//! All that is known of a failed run, in one archive that can be given away: secrets out, its size bounded, and its
//! contents shown before it is written.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cublame_core::python::{Module, seeds::seeds};
use cublame_core::run::{self, Report};
use cublame_core::scrub::{Identity, scrub};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::choose::Failed;
use super::issue::{self, About};
use super::{machine, minimal};
use crate::os::files;
use crate::session::folder::EVENTS;

/// No text that helps is longer.
const LONGEST_TEXT: usize = 1 << 20;
const LARGEST_TENSORS: u64 = 16 << 20;
const LARGEST_BUNDLE: usize = 48 << 20;
const MOST_SOURCES: usize = 60;

/// What an archive will hold.
#[derive(Debug, Default)]
pub struct Bundle {
    pub items: Vec<Item>,
    /// What is not in it, as whole sentences.
    pub left_out: Vec<String>,
}

#[derive(Debug)]
pub struct Item {
    pub name: String,
    /// A few words.
    pub what: &'static str,
    pub bytes: Vec<u8>,
}

impl Bundle {
    /// Reads and asks; nothing is written.
    pub fn gather(failed: &Failed, about: &About) -> Self {
        let mut bundle = Bundle::default();
        bundle.text("README.md", "the failure, in the words of a bug report", &issue::page(failed, about));
        bundle.json("run.json", "the command, its mode and its variables", &failed.run);
        let exit = failed.folder.report().whole().map(|report| report.exit).unwrap_or_default();
        let verdicts = failed.judged.verdicts.clone();
        let finished = failed.run.started;
        let id = failed.run.id.clone();
        let report = Report {
            schema: run::SCHEMA,
            run: id,
            finished,
            exit,
            partial: Vec::new(),
            verdicts,
            telemetry: Vec::new(),
        };
        bundle.json("report.json", "the verdicts", &report);
        if let Some(log) = failed.folder.log().whole() {
            let lines: String = log.lines.iter().map(|line| format!("{}\n", line.text)).collect();
            bundle.text("log.txt", "what the program printed, condensed", &lines);
        }
        bundle.events(failed);
        bundle.sources(failed);
        match machine::git(Path::new(&failed.run.cwd)) {
            Some(git) => {
                bundle.text("git.txt", "the commit, and which files differ from it", &git.state);
                if !git.diff.is_empty() {
                    bundle.text("changes.diff", "what differs from the commit", &git.diff);
                }
            }
            None => bundle.left_out.push("The folder is in no Git repository.".to_owned()),
        }
        bundle.text("packages.txt", "the installed packages", &about.packages);
        bundle.text("machine.txt", "the system, the GPUs, the variables that matter", &about.machine(failed));
        bundle.minimal(failed);
        bundle
    }

    /// Nothing of the machine's owner is left in it.
    pub fn scrubbed(mut self, identity: &Identity) -> Self {
        for item in &mut self.items {
            item.name = scrub(&item.name, identity);
            if let Ok(text) = std::str::from_utf8(&item.bytes) {
                item.bytes = scrub(text, identity).into_bytes();
            }
        }
        self.left_out.iter_mut().for_each(|sentence| *sentence = scrub(sentence, identity));
        self
    }

    pub fn size(&self) -> usize {
        self.items.iter().map(|item| item.bytes.len()).sum()
    }

    /// A line for each file: how large, its name, what it is.
    pub fn listing(&self) -> String {
        let width = self.items.iter().map(|item| item.name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for item in &self.items {
            let _ = writeln!(text, "  {:>9}  {:width$}  {}", size_in_words(item.bytes.len()), item.name, item.what);
        }
        for sentence in &self.left_out {
            let _ = writeln!(text, "  {sentence}");
        }
        text
    }

    /// Writes a new archive, which has one folder inside. A file that is there already is not written over.
    pub fn write(&self, path: &Path, folder: &str, modified: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        self.write_to(file, folder, modified).inspect_err(|_| drop(std::fs::remove_file(path)))
    }

    fn write_to(&self, file: File, folder: &str, modified: u64) -> io::Result<()> {
        let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
        for item in &self.items {
            let mut header = tar::Header::new_gnu();
            header.set_size(item.bytes.len() as u64);
            header.set_mode(0o644);
            header.set_mtime(modified);
            archive.append_data(&mut header, format!("{folder}/{}", item.name), &item.bytes[..])?;
        }
        archive.into_inner()?.finish()?.sync_all()
    }

    fn text(&mut self, name: &str, what: &'static str, text: &str) {
        let kept = if text.len() <= LONGEST_TEXT {
            text.to_owned()
        } else {
            self.left_out.push(format!("The middle of {name} is left out: it is {}.", size_in_words(text.len())));
            let (head, tail) = (text.floor_char_boundary(LONGEST_TEXT / 2), text.len() - LONGEST_TEXT / 2);
            format!("{}\n[...]\n{}", &text[..head], &text[text.floor_char_boundary(tail)..])
        };
        self.add(Item { name: name.to_owned(), what, bytes: kept.into_bytes() });
    }

    fn json(&mut self, name: &str, what: &'static str, value: &impl serde::Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.text(name, what, &(text + "\n")),
            Err(failure) => self.left_out.push(format!("{name} is left out: {failure}.")),
        }
    }

    fn add(&mut self, item: Item) {
        if self.size() + item.bytes.len() > LARGEST_BUNDLE {
            self.left_out.push(format!("{} is left out: the bundle would be too large.", item.name));
        } else {
            self.items.push(item);
        }
    }

    fn events(&mut self, failed: &Failed) {
        let mut names = files::names_beneath(failed.folder.path(), &[EVENTS]).unwrap_or_default();
        names.sort();
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| !name.starts_with('.')) {
            if let Ok(bytes) = files::read_beneath(failed.folder.path(), &[EVENTS, name], LONGEST_TEXT as u64 * 4)
                && !bytes.is_empty()
            {
                let text = String::from_utf8_lossy(&bytes);
                self.text(&format!("{EVENTS}/{name}"), "what the Python hook saw in one process", &text);
            }
        }
    }

    /// The user's own files that the verdicts name, and the seeds that are set in them.
    fn sources(&mut self, failed: &Failed) {
        let mut found_seeds = String::new();
        let paths = own_files(failed);
        if paths.len() > MOST_SOURCES {
            self.left_out.push(format!("{} of {} sources are left out.", paths.len() - MOST_SOURCES, paths.len()));
        }
        for path in paths.into_iter().take(MOST_SOURCES) {
            let shown = path.strip_prefix(&failed.run.cwd).unwrap_or(&path).to_string_lossy().into_owned();
            let name = format!("sources/{}", shown.trim_start_matches('/'));
            match read(&path) {
                Ok(text) => {
                    for seed in seeds(&Module::parse(shown.as_str(), None, text.as_str())) {
                        let _ = writeln!(found_seeds, "{shown}:{}: {}", seed.line, seed.text);
                    }
                    self.text(&name, "a source that the failure touches", &text);
                }
                Err(failure) => self.left_out.push(format!("{name} cannot be read: {failure}.")),
            }
        }
        if found_seeds.is_empty() {
            found_seeds = "No seed is set in these sources.\n".to_owned();
        }
        self.text("seeds.txt", "the seeds that the sources set", &found_seeds);
    }

    /// What `--minimal` has made.
    fn minimal(&mut self, failed: &Failed) {
        let folder = minimal::folder_of(failed);
        if let Ok(text) = read(&folder.join(minimal::PROGRAM)) {
            self.text("repro/repro.py", "the failing call alone", &text);
        }
        match std::fs::metadata(folder.join(minimal::TENSORS)) {
            Ok(about) if about.len() <= LARGEST_TENSORS => match std::fs::read(folder.join(minimal::TENSORS)) {
                Ok(bytes) => {
                    let name = "repro/tensors.pt".to_owned();
                    self.add(Item { name, what: "its tensors: VALUES OF YOUR DATA", bytes });
                }
                Err(failure) => self.left_out.push(format!("repro/tensors.pt cannot be read: {failure}.")),
            },
            Ok(about) => {
                let size = size_in_words(usize::try_from(about.len()).unwrap_or(usize::MAX));
                self.left_out.push(format!("repro/tensors.pt is left out: it is {size}."));
            }
            Err(_) => {}
        }
    }
}

pub fn size_in_words(bytes: usize) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

fn own_files(failed: &Failed) -> BTreeSet<PathBuf> {
    let verdicts = &failed.judged.verdicts;
    let frames = verdicts.iter().flat_map(|verdict| &verdict.frames).filter(|frame| frame.user);
    let places = verdicts.iter().flat_map(|verdict| verdict.place.iter().chain(&verdict.reported));
    let named = frames.filter_map(|frame| frame.path.clone()).chain(places.filter_map(|place| place.path.clone()));
    named.chain(failed.run.entry.clone()).map(PathBuf::from).filter(|path| path.is_file()).collect()
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST_TEXT as u64 * 4).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! Reads the source files that the core asks for, and finds them when the failure happened on another machine.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cublame_core::advice::advise;
use cublame_core::blame::Reading;
use cublame_core::catalog::{Language, Texts};
use cublame_core::config::apply;
use cublame_core::fixes::{Failure, fixes};
use cublame_core::source::Source;
use cublame_core::{Evidence, Sources, Verdict};

use crate::configure::files::Change;

/// No source file that people write is larger.
const LARGEST: u64 = 8 << 20;
/// Files looked at when a name has to be found by its end.
const MOST_FILES: usize = 200_000;
/// How often the core may ask for further files: the reported file, its imports, theirs.
const ROUNDS: usize = 4;

/// The verdicts on some evidence, with the sources that they were made from.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    pub verdicts: Vec<Verdict>,
    pub sources: Sources,
}

/// Blames, reading what the core wants to read, and advises.
///
/// `roots` are the folders whose files are the user's own code; `cwd` is where relative names of the evidence start.
pub fn judge(evidence: &Evidence, roots: &[PathBuf], cwd: Option<&Path>, texts: &Texts) -> Judged {
    let mut sources = Sources::new(roots.iter().map(|root| root.to_string_lossy().into_owned()).collect());
    let mut finder = Finder::new(roots, cwd);
    insert_cells(&mut sources, evidence);
    let reading = Reading::of(evidence);
    for _ in 0..ROUNDS {
        let wanted = reading.wanted(&sources);
        if wanted.is_empty() {
            break;
        }
        for name in wanted {
            let found = finder.find(&name).and_then(|path| read_source(&path));
            sources.insert(name, found);
        }
    }
    let mut verdicts = reading.blame(&sources, texts);
    for verdict in &mut verdicts {
        verdict.advice = advise(verdict, evidence, texts);
        if let Some(place) = verdict.place.as_ref().filter(|place| !sources.asked(&place.file)) {
            let found = finder.find(&place.file).and_then(|path| read_source(&path));
            sources.insert(place.file.clone(), found);
        }
        write_edits(verdict, &sources, texts);
    }
    Judged { verdicts, sources }
}

/// The cells of notebooks, which are no files: their texts are in the evidence.
pub fn insert_cells(sources: &mut Sources, evidence: &Evidence) {
    let mut cells: HashMap<&str, Arc<str>> = HashMap::new();
    for cell in evidence.cells() {
        let Some(hash) = cell.sha256.as_deref() else { continue };
        if let Some(text) = &cell.source {
            cells.entry(hash).or_insert_with(|| Arc::from(text.as_str()));
        }
        if let Some(text) = cells.get(hash) {
            sources.insert(cell.name(), Some(Source { path: String::new(), text: Arc::clone(text) }));
        }
    }
}

/// The first edit of the source that carries an advice out, as a unified diff.
pub fn write_edits(verdict: &mut Verdict, sources: &Sources, texts: &Texts) {
    let Some(place) = &verdict.place else { return };
    let Some(source) = sources.get(&place.file) else { return };
    let failure = Failure { verdict, path: &source.path, text: &source.text, line: place.line };
    let found = fixes(&failure, texts);
    for advice in &mut verdict.advice {
        let fix = found.iter().find(|fix| fix.advice == advice.id);
        advice.edit = fix.map(|fix| {
            let path = PathBuf::from(&source.path);
            let after = Some(apply(&source.text, &fix.edits));
            Change { path, open: None, before: Some(source.text.to_string()), after }.diff()
        });
    }
}

/// Verdicts of a report in the words of a language: one that was written in another is judged again, and where that comes
/// to the same, the new words are taken. What to do is worked out anew in any case.
pub fn retold(verdicts: Vec<Verdict>, evidence: &Evidence, cwd: &Path, texts: &Texts) -> Vec<Verdict> {
    let foreign = verdicts
        .first()
        .is_some_and(|first| is_chinese(&first.summary) != (texts.language() == Language::SimplifiedChinese));
    let again = if foreign { judge(evidence, &[], Some(cwd), texts).verdicts } else { Vec::new() };
    let same = |old: &Verdict, new: &Verdict| (&old.place, old.certainty) == (&new.place, new.certainty);
    let mut verdicts = verdicts;
    for (index, verdict) in verdicts.iter_mut().enumerate() {
        let new = again.get(index).filter(|new| new.kind == verdict.kind);
        if let Some(new) = new {
            verdict.summary.clone_from(&new.summary);
        }
        // Another place has other reasons: the sources may not be there any more.
        if let Some(new) = new.filter(|new| same(verdict, new)) {
            verdict.because.clone_from(&new.because);
            verdict.missing.clone_from(&new.missing);
            verdict.collateral.clone_from(&new.collateral);
        }
        verdict.advice = advise(verdict, evidence, texts);
    }
    verdicts
}

fn is_chinese(text: &str) -> bool {
    text.chars().any(|character| ('\u{4e00}'..='\u{9fff}').contains(&character))
}

/// A file as source; None for what is no file or larger than any source.
pub fn read_source(path: &Path) -> Option<Source> {
    let about = fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > LARGEST {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    Some(Source { path: path.to_string_lossy().into_owned(), text: Arc::from(String::from_utf8_lossy(&bytes)) })
}

/// Finds what a name in some evidence means on this machine.
pub struct Finder<'a> {
    roots: &'a [PathBuf],
    cwd: Option<&'a Path>,
    /// Every file under the roots by its last component, made when a name is first searched by its end.
    by_base_name: Option<HashMap<String, Vec<PathBuf>>>,
}

impl<'a> Finder<'a> {
    pub fn new(roots: &'a [PathBuf], cwd: Option<&'a Path>) -> Self {
        Self { roots, cwd, by_base_name: None }
    }

    /// The file that a name means here: itself, or the one file under the roots that shares its longest end.
    pub fn find(&mut self, name: &str) -> Option<PathBuf> {
        if name.starts_with('<') {
            return None;
        }
        let path = Path::new(name);
        if path.is_absolute() && path.is_file() {
            return Some(path.to_owned());
        }
        let starts = self.cwd.into_iter().chain(self.roots.iter().map(PathBuf::as_path));
        if let Some(found) = starts.map(|start| start.join(path)).find(|path| path.is_file()) {
            return Some(found);
        }
        self.find_by_end(name)
    }

    fn find_by_end(&mut self, name: &str) -> Option<PathBuf> {
        let wanted = components(name);
        let files = self.by_base_name.get_or_insert_with(|| index(self.roots));
        let mut best: Vec<(usize, &PathBuf)> = files
            .get(*wanted.last()?)?
            .iter()
            .map(|path| (common_end(&wanted, &components(&path.to_string_lossy())), path))
            .collect();
        best.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        match best.as_slice() {
            [(_, only)] => Some((*only).clone()),
            // Two files that fit equally well: a wrong line is worse than none.
            [(first, path), (second, _), ..] => (first > second).then(|| (*path).clone()),
            [] => None,
        }
    }
}

fn index(roots: &[PathBuf]) -> HashMap<String, Vec<PathBuf>> {
    let mut files: HashMap<String, Vec<PathBuf>> = HashMap::new();
    let Some((first, rest)) = roots.split_first() else { return files };
    let mut walk = ignore::WalkBuilder::new(first);
    rest.iter().for_each(|root| {
        walk.add(root);
    });
    for entry in walk.build().take(MOST_FILES).flatten() {
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            files.entry(entry.file_name().to_string_lossy().into_owned()).or_default().push(entry.into_path());
        }
    }
    files
}

/// The parts of a path of any system: a log of Windows is read on Linux too.
fn components(path: &str) -> Vec<&str> {
    path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect()
}

fn common_end(one: &[&str], other: &[&str]) -> usize {
    one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[&str], name: &str, expected: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x = 1\n").unwrap();
        }
        let roots = [folder.path().to_owned()];
        let found = Finder::new(&roots, None).find(name);
        assert_eq!(found, expected.map(|file| folder.path().join(file)), "{name}");
    }

    #[test]
    fn a_file_of_another_machine_is_found_by_its_longest_end() {
        check(&["src/model.py", "train.py"], "/home/dev/proj/src/model.py", Some("src/model.py"));
        check(&["a/model.py", "b/model.py"], "/cluster/job/b/model.py", Some("b/model.py"));
        check(&["pkg/train.py"], r"D:\work\proj\pkg\train.py", Some("pkg/train.py"));
        check(&["train.py"], "train.py", Some("train.py"));
        check(&["räksmörgås/modell ü.py"], "/x/räksmörgås/modell ü.py", Some("räksmörgås/modell ü.py"));
    }

    #[test]
    fn two_files_that_fit_equally_well_are_none() {
        check(&["a/model.py", "b/model.py"], "/cluster/job/model.py", None);
        check(&["a.py"], "<string>", None);
        check(&["a.py"], "/other/b.py", None);
    }

    #[test]
    fn an_advice_has_its_edit_as_a_diff() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resume.py");
        fs::write(&path, "import torch\n\nstate = torch.load(\"best.pt\")\nprint(state)\n").unwrap();
        let log = format!(
            "Traceback (most recent call last):\n  File \"{}\", line 3, in <module>\n    state = torch.load(\"best.pt\")\n\
             RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.\n",
            path.display()
        );
        let evidence = Evidence { log: Some(cublame_core::log::Log::from_text(&log)), ..Evidence::default() };
        let judged = judge(&evidence, &[folder.path().to_owned()], None, Texts::get(Default::default()));
        let [verdict] = &judged.verdicts[..] else { panic!("{:?}", judged.verdicts) };
        let advice = verdict.advice.iter().find(|advice| advice.id == "map-location").unwrap();
        let diff = advice.edit.as_deref().unwrap();
        assert!(
            diff.contains("-state = torch.load(\"best.pt\")\n+state = torch.load(\"best.pt\", map_location=\"cpu\")\n"),
            "{diff}"
        );
        assert!(verdict.advice.iter().filter(|other| other.id != "map-location").all(|other| other.edit.is_none()));
    }
}

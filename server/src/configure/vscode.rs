//! launch.json and tasks.json, or the sections of a `.code-workspace` that hold them.

use std::path::{Path, PathBuf};

use cublame_core::advice::Setting;
use cublame_core::config::launch_json::{self as launch, Entry, Launch, Profile};
use cublame_core::config::{Place, tasks_json};
use cublame_core::mode::{Mode, prefix};

use super::files::{Change, Texts, existing};
use super::records::{Records, not_switched};
use super::{Plan, Targets, Wish, profiles, runs_nowhere};
use crate::error::{Error, Result};

/// `dir` is the workspace folder, or a .code-workspace file.
pub fn plan(dir: &Path, wish: &Wish, texts: &Texts) -> Result<Plan> {
    let mut workspace = Workspace::open(dir, texts)?;
    let mut notes = Vec::new();
    match wish {
        Wish::Write(targets) => {
            workspace.configure(targets)?;
            notes = workspace.old_types()?;
        }
        Wish::Remove => workspace.remove()?,
        Wish::Switch { name, mode } => workspace.switch(name, *mode)?,
        Wish::SwitchBack { name } => workspace.switch_back(name)?,
        Wish::Twin { name, modes } => workspace.twin(name, modes)?,
        Wish::Set { program, setting } => workspace.set(program, *setting)?,
        Wish::Upgrade => workspace.upgrade()?,
    }
    Ok(Plan { changes: workspace.into_changes(), notes })
}

/// The files of a workspace, as they are to become.
struct Workspace {
    place: Place,
    /// The folder that `.cublame` is in.
    root: PathBuf,
    /// The folders of a `.code-workspace`: name and path. None: there is one folder, the root.
    folders: Option<Vec<(String, PathBuf)>>,
    launch: Change,
    /// None: tasks stand in the same file as the profiles.
    tasks: Option<Change>,
    records: Records,
}

impl Workspace {
    fn open(dir: &Path, texts: &Texts) -> Result<Self> {
        let dir = existing(dir)?;
        let is_file = dir.is_file();
        let root = if is_file { dir.parent().unwrap_or(&dir).to_owned() } else { dir.clone() };
        let records = Records::read(&root, texts)?;
        if !is_file {
            return Ok(Self {
                place: Place::OwnFile,
                folders: None,
                launch: texts.of(root.join(".vscode/launch.json"))?,
                tasks: Some(texts.of(root.join(".vscode/tasks.json"))?),
                records,
                root,
            });
        }
        let launch = texts.of(dir)?;
        let folders = launch::workspace_folders(launch.text()).map_err(|refused| launch.refuse(&refused))?;
        let folders = folders.into_iter().map(|folder| (folder.name, root.join(folder.path))).collect();
        Ok(Self { place: Place::Section, folders: Some(folders), launch, tasks: None, records, root })
    }

    fn configure(&mut self, targets: &Targets) -> Result<()> {
        let mut launches = targets.launches(&|path| self.written(path))?;
        if launches.is_empty() {
            launches.push(Launch::CurrentFile);
        }
        let all = profiles(&launches, &targets.modes());
        let place = self.place;
        // A debugger starts the interpreter itself, so a mode that needs words before it is for tasks alone.
        let debugged: Vec<Profile> = all.iter().filter(|profile| prefix(profile.mode).is_empty()).cloned().collect();
        self.launch.edit(|text| launch::configure(text, place, &debugged))?;
        self.tasks().edit(|text| tasks_json::configure(text, place, "cublame", &all))?;
        Ok(())
    }

    /// Their debugger has been called `debugpy` since the Python extension gave it away.
    fn old_types(&self) -> Result<Vec<String>> {
        let entries = self.entries()?;
        let old = entries.iter().filter(|entry| entry.has_old_type());
        let note = |name: &str| {
            format!(
                "`{name}` has the type `python`, which is now called `debugpy`: `cublame configure vscode --upgrade`"
            )
        };
        Ok(old.map(|entry| note(&entry.name)).collect())
    }

    fn remove(&mut self) -> Result<()> {
        for name in self.records.names(&self.file()) {
            // A configuration that is gone has nothing to switch back.
            if self.entry(&name).is_ok() {
                self.switch_back(&name)?;
            }
        }
        let place = self.place;
        self.launch.edit(|text| launch::remove(text, place))?;
        self.tasks().edit(|text| tasks_json::remove(text, place))
    }

    fn twin(&mut self, name: &str, modes: &[Mode]) -> Result<()> {
        let (entry, place) = (self.entry(name)?, self.place);
        modes.iter().try_for_each(|&mode| {
            debuggable(mode)?;
            self.launch.edit(|text| launch::twin(text, place, entry.index, mode))
        })
    }

    fn switch(&mut self, name: &str, mode: Mode) -> Result<()> {
        debuggable(mode)?;
        let (entry, file, place) = (self.entry(name)?, self.file(), self.place);
        let earlier = self.records.find(&file, name);
        let (edits, record) = launch::switch(self.launch.text(), place, &file, entry.index, mode, earlier)
            .map_err(|refused| self.launch.refuse(&refused))?;
        self.launch.edit(|_| Ok(edits))?;
        self.records.keep(&file, name, Some(record))
    }

    fn switch_back(&mut self, name: &str) -> Result<()> {
        let (entry, file, place) = (self.entry(name)?, self.file(), self.place);
        let record = self.records.find(&file, name).ok_or_else(|| not_switched(name))?;
        self.launch.edit(|text| launch::switch_back(text, place, entry.index, record))?;
        self.records.keep(&file, name, None)
    }

    /// Configurations of the current file run it too.
    fn set(&mut self, program: &Path, setting: Setting) -> Result<()> {
        let (program, place) = (existing(program)?, self.place);
        let relative = self.written(&program);
        let written = [
            "${file}".to_owned(),
            format!("${{workspaceFolder}}/{relative}"),
            program.to_string_lossy().into_owned(),
            relative,
        ];
        let runs = |entry: &Entry| entry.program.as_ref().is_some_and(|program| written.contains(program));
        let entries: Vec<Entry> =
            self.entries()?.into_iter().filter(|entry| entry.is_python() && runs(entry)).collect();
        if entries.is_empty() {
            return Err(runs_nowhere(&program, "vscode"));
        }
        entries.iter().try_for_each(|entry| {
            self.launch.edit(|text| launch::set_variable(text, place, entry.index, setting.variable, setting.value))
        })
    }

    fn upgrade(&mut self) -> Result<()> {
        let place = self.place;
        for entry in self.entries()? {
            self.launch.edit(|text| launch::upgrade_type(text, place, entry.index))?;
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        launch::list(self.launch.text(), self.place).map_err(|refused| self.launch.refuse(&refused))
    }

    /// The one configuration of that name.
    fn entry(&self, name: &str) -> Result<Entry> {
        let entries = self.entries()?;
        let mut named = entries.iter().filter(|entry| entry.name == name);
        match (named.next(), named.next()) {
            (Some(entry), None) => Ok(entry.clone()),
            (Some(_), Some(_)) => Err(Error::user(format!("several configurations are named `{name}`"))
                .hint("give each a name of its own; VS Code asks for that too")),
            (None, _) => {
                let names: Vec<String> = entries.iter().map(|entry| format!("`{}`", entry.name)).collect();
                let hint = if names.is_empty() {
                    "there are none".to_owned()
                } else {
                    format!("there are {}", names.join(", "))
                };
                Err(Error::user(format!("there is no configuration named `{name}`")).hint(hint))
            }
        }
    }

    /// A path as VS Code writes it.
    fn written(&self, path: &Path) -> String {
        let relative_to = |folder: &Path| Some(path.strip_prefix(folder).ok()?.to_string_lossy().into_owned());
        let Some(folders) = &self.folders else {
            return relative_to(&self.root).unwrap_or_else(|| path.to_string_lossy().into_owned());
        };
        let in_folder = folders.iter().find_map(|(name, folder)| {
            let relative = relative_to(&existing(folder).ok()?)?;
            Some(format!("${{workspaceFolder:{name}}}/{relative}"))
        });
        in_folder.unwrap_or_else(|| path.to_string_lossy().into_owned())
    }

    fn tasks(&mut self) -> &mut Change {
        self.tasks.as_mut().unwrap_or(&mut self.launch)
    }

    /// The launch file's name in the records.
    fn file(&self) -> String {
        let path = self.launch.path.strip_prefix(&self.root).unwrap_or(&self.launch.path);
        path.to_string_lossy().into_owned()
    }

    /// The records go first: a switch that nobody remembers could not be undone.
    fn into_changes(self) -> Vec<Change> {
        self.records.into_changes().into_iter().chain([self.launch]).chain(self.tasks).collect()
    }
}

fn debuggable(mode: Mode) -> Result<()> {
    if prefix(mode).is_empty() {
        return Ok(());
    }
    let what = format!("mode {mode} needs words before the interpreter, which a debugger cannot give");
    Err(Error::user(what).hint("`cublame configure vscode` writes a task for it"))
}

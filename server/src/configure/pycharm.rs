//! PyCharm's shared run configurations, copied from the user's own or created.

use std::path::{Path, PathBuf};

use cublame_core::advice::Setting;
use cublame_core::config::launch_json::{Launch, Profile};
use cublame_core::config::run_xml::{self, RunConfiguration};
use cublame_core::mode::{Mode, prefix};

use super::files::{Change, Texts, existing, names_in};
use super::records::{Records, not_switched};
use super::{Plan, Targets, Wish, profiles, runs_nowhere};
use crate::error::{Error, Result};

/// `dir` is the project's folder.
pub fn plan(dir: &Path, wish: &Wish, texts: &Texts) -> Result<Plan> {
    let project = Project::open(dir, texts)?;
    let changes = match wish {
        Wish::Write(targets) => project.configure(targets)?,
        Wish::Remove => project.remove()?,
        Wish::Switch { name, mode } => project.switch(name, Some(*mode))?,
        Wish::SwitchBack { name } => project.switch(name, None)?,
        Wish::Twin { name, modes } => project.copies(&[project.named(name)?], &usable(modes.clone())?)?,
        Wish::Set { program, setting } => project.set(program, *setting)?,
        Wish::Upgrade => return Err(Error::user("PyCharm's configurations have no older type to be upgraded")),
    };
    Ok(changes.into())
}

struct Project<'t> {
    texts: &'t Texts,
    root: PathBuf,
    /// Every shared run configuration that can be read.
    shared: Vec<Shared>,
}

struct Shared {
    /// Its folder, relative to the project.
    folder: &'static str,
    file: Change,
    configuration: RunConfiguration,
}

/// Where PyCharm keeps shared configurations; it also finds `*.run.xml` elsewhere, most often at the top.
const FOLDERS: [&str; 3] = [".run", ".idea/runConfigurations", "."];

impl<'t> Project<'t> {
    fn open(dir: &Path, texts: &'t Texts) -> Result<Self> {
        let root = existing(dir)?;
        let mut shared = Vec::new();
        for folder in FOLDERS {
            let suffix = if folder == ".idea/runConfigurations" { ".xml" } else { ".run.xml" };
            for name in texts.names_in(&root.join(folder)).into_iter().filter(|name| name.ends_with(suffix)) {
                let file = texts.of(root.join(folder).join(name))?;
                let configuration = run_xml::read(file.text()).map_err(|refused| file.refuse(&refused))?;
                shared.push(Shared { folder, file, configuration });
            }
        }
        Ok(Self { texts, root, shared })
    }

    fn configure(&self, targets: &Targets) -> Result<Vec<Change>> {
        let launches = targets.launches(&|path| {
            let relative = path.strip_prefix(&self.root).unwrap_or(path);
            relative.to_string_lossy().into_owned()
        })?;
        let modes = usable(targets.modes())?;
        let theirs =
            || self.shared.iter().filter(|shared| shared.configuration.is_python() && !shared.configuration.is_ours());
        if launches.is_empty() {
            let wanted: Vec<&Shared> = theirs().collect();
            if wanted.is_empty() {
                return Err(Error::user("there is no shared Python run configuration here to copy")
                    .hint("name what is to be run, as in `cublame configure pycharm --program train.py`"));
            }
            return self.copies(&wanted, &modes);
        }
        let mut changes = Vec::new();
        for profile in profiles(&launches, &modes) {
            match theirs().find(|shared| runs(&shared.configuration, &profile.launch)) {
                Some(shared) => changes.push(self.copy(shared, profile.mode)?),
                None => changes.extend(self.create(&profile)?),
            }
        }
        Ok(changes)
    }

    fn copies(&self, wanted: &[&Shared], modes: &[Mode]) -> Result<Vec<Change>> {
        wanted.iter().flat_map(|shared| modes.iter().map(|&mode| self.copy(shared, mode))).collect()
    }

    /// One that is there already stays as the user has changed it.
    fn copy(&self, shared: &Shared, mode: Mode) -> Result<Change> {
        let name = run_xml::name_of_copy(&shared.configuration.name, mode);
        let mut change = self.file_for(shared.folder, &name)?;
        if change.before.is_none() {
            let copied = run_xml::copy(shared.file.text(), mode).map_err(|refused| shared.file.refuse(&refused))?;
            change.after = Some(copied);
        }
        Ok(change)
    }

    fn create(&self, profile: &Profile) -> Result<Option<Change>> {
        let Some(text) = run_xml::create(profile, self.module().as_deref()) else { return Ok(None) };
        let mut change = self.file_for(".run", &profile.name())?;
        if change.before.is_none() {
            change.after = Some(text);
        }
        Ok(Some(change))
    }

    fn set(self, program: &Path, setting: Setting) -> Result<Vec<Change>> {
        let program = existing(program)?;
        let launch = Launch::Program(relative(&self.root, &program));
        let mut changes = Vec::new();
        for shared in self.shared {
            if shared.configuration.is_python() && runs(&shared.configuration, &launch) {
                let mut change = shared.file;
                change.edit(|text| run_xml::set_variable(text, setting.variable, setting.value))?;
                changes.push(change);
            }
        }
        if changes.is_empty() { Err(runs_nowhere(&program, "pycharm")) } else { Ok(changes) }
    }

    fn remove(self) -> Result<Vec<Change>> {
        let mut records = Records::read(&self.root, self.texts)?;
        let mut changes = Vec::new();
        for mut shared in self.shared {
            let (file, name) = (relative(&self.root, &shared.file.path), &shared.configuration.name);
            if shared.configuration.is_ours() {
                shared.file.after = None;
            } else if let Some(record) = records.find(&file, name) {
                shared.file.edit(|text| run_xml::switch_back(text, record))?;
                records.keep(&file, name, None)?;
            }
            changes.push(shared.file);
        }
        Ok(records.into_changes().into_iter().chain(changes).collect())
    }

    /// None: back to what it was.
    fn switch(self, name: &str, mode: Option<Mode>) -> Result<Vec<Change>> {
        let mut records = Records::read(&self.root, self.texts)?;
        let path = self.named(name)?.file.path.clone();
        let (mut change, file) = (self.texts.of(path.clone())?, relative(&self.root, &path));
        let earlier = records.find(&file, name);
        let now = match mode {
            Some(mode) => {
                usable(vec![mode])?;
                let (edits, record) =
                    run_xml::switch(change.text(), &file, mode, earlier).map_err(|refused| change.refuse(&refused))?;
                change.edit(|_| Ok(edits))?;
                Some(record)
            }
            None => {
                let record = earlier.ok_or_else(|| not_switched(name))?;
                change.edit(|text| run_xml::switch_back(text, record))?;
                None
            }
        };
        records.keep(&file, name, now)?;
        Ok(records.into_changes().into_iter().chain([change]).collect())
    }

    fn named(&self, name: &str) -> Result<&Shared> {
        let mut named = self.shared.iter().filter(|shared| shared.configuration.name == name);
        match (named.next(), named.next()) {
            (Some(shared), None) => Ok(shared),
            (Some(first), Some(second)) => Err(Error::user(format!("two run configurations are named `{name}`"))
                .hint(format!("rename one of {} and {}", first.file.path.display(), second.file.path.display()))),
            (None, _) => Err(Error::user(format!("there is no shared run configuration named `{name}`"))
                .hint("in PyCharm, tick `Store as project file` in the configuration's dialog")),
        }
    }

    /// The file of a configuration of ours: the one that has the name already, else one named after it.
    fn file_for(&self, folder: &str, name: &str) -> Result<Change> {
        let there = self.shared.iter().find(|shared| shared.configuration.name == name);
        let suffix = if folder == ".idea/runConfigurations" { "xml" } else { "run.xml" };
        let path = there.map(|shared| shared.file.path.clone());
        self.texts.of(path.unwrap_or_else(|| self.root.join(folder).join(format!("{}.{suffix}", file_name(name)))))
    }

    /// As other configurations call it, else as its .iml file is called.
    fn module(&self) -> Option<String> {
        let theirs = self.shared.iter().find_map(|shared| shared.configuration.module.clone());
        theirs.or_else(|| {
            let names = names_in(&self.root.join(".idea"));
            names.iter().find_map(|name| name.strip_suffix(".iml")).map(str::to_owned)
        })
    }
}

/// The modes that an env block alone can bring.
fn usable(modes: Vec<Mode>) -> Result<Vec<Mode>> {
    match modes.iter().find(|mode| !prefix(**mode).is_empty()) {
        None => Ok(modes),
        Some(mode) => {
            Err(Error::user(format!("mode {mode} needs words before the interpreter, which PyCharm cannot give"))
                .hint(format!("in its terminal, `cublame run --mode {mode} -- python ...` works")))
        }
    }
}

/// Does the user's configuration run this?
fn runs(configuration: &RunConfiguration, launch: &Launch) -> bool {
    let option = |name: &str| configuration.options.get(name).map(String::as_str);
    let is_module = option("MODULE_MODE") == Some("true");
    match launch {
        Launch::Program(path) => {
            let script = option("SCRIPT_NAME").map(|script| script.trim_start_matches("$PROJECT_DIR$/"));
            script == Some(path) && !is_module
        }
        Launch::Module(name) => option("SCRIPT_NAME") == Some(name) && is_module,
        Launch::Pytest(target) => {
            let json = serde_json::Value::from(format!("$PROJECT_DIR$/{target}").trim_end_matches('/')).to_string();
            option("_new_target") == Some(&json)
        }
        Launch::CurrentFile | Launch::Torchrun(_) | Launch::Accelerate(_) => false,
    }
}

/// Letters, digits, blanks, dots, dashes and brackets stay; the rest becomes `_`, as PyCharm does for its own files.
fn file_name(name: &str) -> String {
    let is_kept = |character: char| character.is_alphanumeric() || " .-_()".contains(character);
    name.chars().map(|character| if is_kept(character) { character } else { '_' }).collect()
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

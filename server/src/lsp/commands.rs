//! The commands of `workspace/executeCommand`: a closed set, each with one object of arguments.

use std::path::PathBuf;

use cublame_core::advice::Setting;
use cublame_core::mode::Mode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_lsp::jsonrpc::Error;
use tower_lsp::ls_types::Uri;

use super::documents::path_of;
use crate::configure::{Targets, Tool, USUAL_MODES, Wish};
use crate::world::configuring::Wanted;
use crate::world::orders::Order;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Run,
    Debug,
    Stop,
    Rerun,
    SetMode,
    Configure,
    ExplainText,
    Clear,
    Dismiss,
    Delete,
    CopyReport,
    OpenReport,
    FollowAdvice,
    Doctor,
    Repro,
}

impl Command {
    pub const ALL: &[Command] = &[
        Command::Run,
        Command::Debug,
        Command::Stop,
        Command::Rerun,
        Command::SetMode,
        Command::Configure,
        Command::ExplainText,
        Command::Clear,
        Command::Dismiss,
        Command::Delete,
        Command::CopyReport,
        Command::OpenReport,
        Command::FollowAdvice,
        Command::Doctor,
        Command::Repro,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Command::Run => "cublame.run",
            Command::Debug => "cublame.debug",
            Command::Stop => "cublame.stop",
            Command::Rerun => "cublame.rerun",
            Command::SetMode => "cublame.setMode",
            Command::Configure => "cublame.configure",
            Command::ExplainText => "cublame.explainText",
            Command::Clear => "cublame.clear",
            Command::Dismiss => "cublame.dismiss",
            Command::Delete => "cublame.delete",
            Command::CopyReport => "cublame.copyReport",
            Command::OpenReport => "cublame.openReport",
            Command::FollowAdvice => "cublame.followAdvice",
            Command::Doctor => "cublame.doctor",
            Command::Repro => "cublame.repro",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Command::ALL.iter().copied().find(|command| command.name() == name)
    }

    /// The order of a command and its arguments, or what is wrong with them.
    pub fn order(self, arguments: Vec<Value>) -> Result<Order, Error> {
        Ok(match self {
            Command::Run | Command::Debug => {
                let RunArguments { uri, arguments, mode } = read(self, arguments)?;
                let program = path_of(&uri)
                    .ok_or_else(|| Error::invalid_params(format!("{}: {} is no file", self.name(), uri.as_str())))?;
                let mode = mode.map(|mode| word(self, &mode)).transpose()?;
                Order::Run { program, arguments, mode, debug: self == Command::Debug }
            }
            Command::Stop => Order::Stop { run: read_or_default::<NewestRun>(self, arguments)?.run },
            Command::Rerun => {
                let RerunArguments { run, mode } = read(self, arguments)?;
                Order::Rerun { run, mode: mode.map(|mode| word(self, &mode)).transpose()? }
            }
            Command::SetMode => {
                let ModeArguments { mode, folder, quiet } = read(self, arguments)?;
                Order::SetMode { mode: word(self, &mode)?, folder: folder.as_ref().and_then(path_of), quiet }
            }
            Command::Configure => Order::Configure(wanted(self, read(self, arguments)?)?),
            Command::ExplainText => {
                let ExplainArguments { text, blocking, live } = read(self, arguments)?;
                Order::Explain { text, blocking, live }
            }
            Command::Clear => Order::Clear,
            Command::Dismiss => Order::Dismiss { run: read::<OneRun>(self, arguments)?.run },
            Command::Delete => Order::Delete { run: read::<OneRun>(self, arguments)?.run },
            Command::CopyReport => Order::CopyReport { run: read_or_default::<NewestRun>(self, arguments)?.run },
            Command::FollowAdvice => {
                let AdviceArguments { run, index, advice } = read(self, arguments)?;
                Order::FollowAdvice { run, index, advice }
            }
            Command::OpenReport => Order::OpenReport { run: read_or_default::<NewestRun>(self, arguments)?.run },
            Command::Repro => Order::Repro { run: read_or_default::<NewestRun>(self, arguments)?.run },
            Command::Doctor => Order::Doctor { trusted: read_or_default::<DoctorArguments>(self, arguments)?.trusted },
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RunArguments {
    /// The program, as the address of its file.
    pub uri: Uri,
    #[serde(default)]
    pub arguments: Vec<String>,
    #[serde(default)]
    pub mode: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RerunArguments {
    pub run: String,
    /// Without it, that of the run.
    #[serde(default)]
    pub mode: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct OneRun {
    pub run: String,
}

/// The advice of a verdict, by its number and its id.
#[derive(Debug, Serialize, Deserialize)]
pub struct AdviceArguments {
    pub run: String,
    #[serde(default)]
    pub index: usize,
    pub advice: String,
}

/// Without a run, the newest that the command makes sense for.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NewestRun {
    #[serde(default)]
    pub run: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct DoctorArguments {
    /// False in a workspace that the user does not trust: its interpreter is not run then.
    pub trusted: bool,
}

impl Default for DoctorArguments {
    fn default() -> Self {
        Self { trusted: true }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ModeArguments {
    pub mode: String,
    /// The workspace folder; without it, the first.
    #[serde(default)]
    pub folder: Option<Uri>,
    /// The editor shows the mode itself, so that nothing needs to be said.
    #[serde(default)]
    pub quiet: bool,
}

/// `{ "tool": "vscode", "program": "file:///home/dev/proj/train.py" }`
///
/// The answer is `{ "changed": [paths], "inEditor": [paths] }`, or the unified diff for a dry run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigureArguments {
    pub tool: Tool,
    /// The workspace folder, a .code-workspace file, or the notebook; without it, the folder of the program.
    #[serde(default)]
    pub uri: Option<Uri>,
    #[serde(default)]
    pub action: ConfigureAction,
    /// Of the user's own configuration, for a switch, a switch back and a twin.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub program: Option<Uri>,
    #[serde(default)]
    pub module: Option<String>,
    /// The address of a file or folder; empty: what pytest itself collects.
    #[serde(default)]
    pub pytest: Option<String>,
    #[serde(default)]
    pub torchrun: Option<Uri>,
    #[serde(default)]
    pub accelerate: Option<Uri>,
    /// For `set`: a variable of PyTorch's allocator, and its value.
    #[serde(default)]
    pub variable: Option<String>,
    #[serde(default)]
    pub value: Option<String>,
    /// Without any, blocking and trace; for a switch or a notebook, blocking.
    #[serde(default)]
    pub modes: Vec<String>,
    /// Nothing is changed; the answer is the diff.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConfigureAction {
    /// Configurations for what is named; with nothing named, for the current file.
    #[default]
    Write,
    Remove,
    Switch,
    SwitchBack,
    Twin,
    /// A setting of PyTorch's allocator, in every configuration that runs the program.
    Set,
    Upgrade,
}

fn wanted(command: Command, asked: ConfigureArguments) -> Result<Wanted, Error> {
    let invalid = |what: String| Error::invalid_params(format!("{}: {what}", command.name()));
    let file = |uri: &Uri| path_of(uri).ok_or_else(|| invalid(format!("{} is no file", uri.as_str())));
    let files = |uri: &Option<Uri>| uri.iter().map(file).collect::<Result<Vec<_>, _>>();
    let modes = asked.modes.iter().map(|mode| word(command, mode)).collect::<Result<Vec<_>, _>>()?;
    let name = || asked.name.clone().ok_or_else(|| invalid("the name of a configuration is missing".to_owned()));
    let pytest = match asked.pytest.as_deref() {
        None => None,
        Some("") => Some(PathBuf::new()),
        Some(uri) => Some(file(&uri.parse().map_err(|_| invalid(format!("{uri} is no address")))?)?),
    };
    let wish = match asked.action {
        ConfigureAction::Write => Wish::Write(Targets {
            programs: files(&asked.program)?,
            modules: asked.module.clone().into_iter().collect(),
            pytest,
            torchrun: files(&asked.torchrun)?,
            accelerate: files(&asked.accelerate)?,
            modes,
        }),
        ConfigureAction::Remove => Wish::Remove,
        ConfigureAction::Switch => match modes[..] {
            [] => Wish::Switch { name: name()?, mode: Mode::Blocking },
            [mode] => Wish::Switch { name: name()?, mode },
            _ => return Err(invalid("a configuration is switched to one mode".to_owned())),
        },
        ConfigureAction::SwitchBack => Wish::SwitchBack { name: name()? },
        ConfigureAction::Twin if modes.is_empty() => Wish::Twin { name: name()?, modes: USUAL_MODES.to_vec() },
        ConfigureAction::Twin => Wish::Twin { name: name()?, modes },
        ConfigureAction::Set => {
            let program = asked.program.as_ref().ok_or_else(|| invalid("the program is missing".to_owned()))?;
            let words = asked.variable.as_deref().zip(asked.value.as_deref());
            let setting = words.and_then(|(variable, value)| Setting::of_words(variable, value));
            let setting = setting.ok_or_else(|| invalid("no setting of the allocator is named".to_owned()))?;
            Wish::Set { program: file(program)?, setting }
        }
        ConfigureAction::Upgrade => Wish::Upgrade,
    };
    let place = asked.uri.as_ref().map(file).transpose()?;
    Ok(Wanted { tool: asked.tool, place, wish, dry_run: asked.dry_run })
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ExplainArguments {
    pub text: String,
    /// The log is of a run with CUDA_LAUNCH_BLOCKING=1.
    #[serde(default)]
    pub blocking: bool,
    /// It comes from a debugger that stands at the failure: nobody asked for it, so nothing is said about it.
    #[serde(default)]
    pub live: bool,
}

fn read<T: DeserializeOwned>(command: Command, arguments: Vec<Value>) -> Result<T, Error> {
    let argument = arguments.into_iter().next().unwrap_or_default();
    serde_json::from_value(argument).map_err(|error| Error::invalid_params(format!("{}: {error}", command.name())))
}

fn read_or_default<T: DeserializeOwned + Default>(command: Command, arguments: Vec<Value>) -> Result<T, Error> {
    match arguments.first() {
        None | Some(Value::Null) => Ok(T::default()),
        Some(_) => read(command, arguments),
    }
}

fn word(command: Command, mode: &str) -> Result<Mode, Error> {
    mode.parse().map_err(|unknown| Error::invalid_params(format!("{}: {unknown}", command.name())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(name: &str, arguments: Value, expected: Result<Order, &str>) {
        let arguments = arguments.as_array().cloned().expect("a list");
        let found = Command::of_name(name).expect("a command").order(arguments);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => assert!(found.message.contains(expected), "{}", found.message),
            (found, expected) => panic!("{found:?} where {expected:?} was expected"),
        }
    }

    #[test]
    fn arguments_become_orders() {
        let run = || "r".to_owned();
        check("cublame.rerun", json!([{ "run": "r" }]), Ok(Order::Rerun { run: run(), mode: None }));
        let blocking = Some(Mode::Blocking);
        check(
            "cublame.rerun",
            json!([{ "run": "r", "mode": "blocking" }]),
            Ok(Order::Rerun { run: run(), mode: blocking }),
        );
        check("cublame.rerun", json!([]), Err("cublame.rerun"));
        check("cublame.rerun", json!([{ "run": "r", "mode": "fast" }]), Err("`fast` is not a mode"));
        check("cublame.stop", json!([]), Ok(Order::Stop { run: None }));
        check("cublame.stop", json!([{ "run": "r" }]), Ok(Order::Stop { run: Some(run()) }));
        check("cublame.dismiss", json!(["r"]), Err("cublame.dismiss"));
        check("cublame.clear", json!([]), Ok(Order::Clear));
        check("cublame.repro", json!([{ "run": "r" }]), Ok(Order::Repro { run: Some(run()) }));
        check("cublame.doctor", json!([]), Ok(Order::Doctor { trusted: true }));
        check("cublame.doctor", json!([{ "trusted": false }]), Ok(Order::Doctor { trusted: false }));
        check(
            "cublame.setMode",
            json!([{ "mode": "trace" }]),
            Ok(Order::SetMode { mode: Mode::Trace, folder: None, quiet: false }),
        );
        let program = PathBuf::from("/home/dev/proj/train.py");
        for (command, debug) in [("cublame.run", false), ("cublame.debug", true)] {
            let order =
                Order::Run { program: program.clone(), arguments: vec!["--fast".to_owned()], mode: None, debug };
            check(command, json!([{ "uri": "file:///home/dev/proj/train.py", "arguments": ["--fast"] }]), Ok(order));
        }
        check("cublame.run", json!([{ "uri": "untitled:1" }]), Err("is no file"));
        let wanted = |wish| Wanted { tool: Tool::Vscode, place: None, wish, dry_run: false };
        check("cublame.configure", json!([{ "tool": "emacs" }]), Err("unknown variant `emacs`"));
        check("cublame.configure", json!([{ "tool": "vscode", "mode": "trace" }]), Err("unknown field `mode`"));
        check("cublame.configure", json!([{ "tool": "vscode", "action": "twin" }]), Err("the name of a configuration"));
        check(
            "cublame.configure",
            json!([{ "tool": "vscode", "action": "switch", "name": "train", "modes": ["trace"] }]),
            Ok(Order::Configure(wanted(Wish::Switch { name: "train".to_owned(), mode: Mode::Trace }))),
        );
        let targets = Targets {
            programs: vec![PathBuf::from("/home/dev/proj/train.py")],
            pytest: Some(PathBuf::new()),
            ..Targets::default()
        };
        let set = |variable: &str| {
            json!([{ "tool": "vscode", "action": "set", "program": "file:///home/dev/proj/train.py",
                "variable": variable, "value": "expandable_segments:True" }])
        };
        let setting = Setting { variable: "PYTORCH_ALLOC_CONF", value: "expandable_segments:True" };
        let wish = Wish::Set { program: PathBuf::from("/home/dev/proj/train.py"), setting };
        check("cublame.configure", set("PYTORCH_ALLOC_CONF"), Ok(Order::Configure(wanted(wish))));
        check("cublame.configure", set("LD_PRELOAD"), Err("no setting of the allocator"));
        let advice = "install-matching-build".to_owned();
        check(
            "cublame.followAdvice",
            json!([{ "run": "r", "index": 1, "advice": advice }]),
            Ok(Order::FollowAdvice { run: run(), index: 1, advice }),
        );
        check(
            "cublame.configure",
            json!([{ "tool": "vscode", "program": "file:///home/dev/proj/train.py", "pytest": "" }]),
            Ok(Order::Configure(wanted(Wish::Write(targets)))),
        );
    }

    #[test]
    fn a_command_is_found_by_its_name_alone() {
        for command in Command::ALL {
            assert_eq!(Command::of_name(command.name()), Some(*command));
        }
        assert_eq!(Command::of_name("cublame.format"), None);
    }
}

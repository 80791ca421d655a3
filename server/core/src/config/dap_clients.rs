//! Entries for debuggers outside VS Code and PyCharm, to be printed: their configurations are programs, not data.

use super::launch_json::{Launch, Profile};
use crate::mode::{Machine, Os, env_block};

/// A Lua entry for nvim-dap, to stand after `require("dap-python").setup(...)`, which makes the adapter `python`.
pub fn nvim_dap(profile: &Profile) -> String {
    let (key, value, arguments) = what_is_run(&profile.launch);
    let value = if value == "${file}" || value.starts_with('/') || key == "module" {
        lua(&value)
    } else {
        lua(&format!("${{workspaceFolder}}/{value}"))
    };
    let env: Vec<String> = env(profile).into_iter().map(|(name, value)| format!("{name} = {}", lua(&value))).collect();
    let arguments = if arguments.is_empty() {
        String::new()
    } else {
        let words: Vec<String> = arguments.iter().map(|word| lua(word)).collect();
        format!("  args = {{ {} }},\n", words.join(", "))
    };
    format!(
        "table.insert(require(\"dap\").configurations.python, {{\n  name = {},\n  type = \"python\",\n  request = \"launch\",\n  \
         {key} = {value},\n{arguments}  console = \"integratedTerminal\",\n  justMyCode = true,\n  subProcess = true,\n  \
         env = {{ {} }},\n}})\n",
        lua(&profile.name()),
        env.join(", "),
    )
}

/// An Emacs Lisp entry for dape, whole in itself: an entry built on dape's own would run its program besides our module.
pub fn dape(profile: &Profile) -> String {
    let (key, value, arguments) = what_is_run(&profile.launch);
    let value = if value == "${file}" { "dape-buffer-default".to_owned() } else { lisp(&value) };
    let words: Vec<String> = arguments.iter().map(|word| lisp(word)).collect();
    let env: Vec<String> = env(profile).into_iter().map(|(name, value)| format!(":{name} {}", lisp(&value))).collect();
    format!(
        r#"(with-eval-after-load 'dape
  (add-to-list 'dape-configs
               '(cublame-{mode}
                 modes (python-mode python-ts-mode)
                 command "python"
                 command-args ("-m" "debugpy.adapter" "--host" "127.0.0.1" "--port" :autoport)
                 port :autoport
                 :type "python"
                 :request "launch"
                 :cwd dape-cwd
                 :{key} {value}
                 :args [{args}]
                 :console "integratedTerminal"
                 :justMyCode t
                 :env ({env}))))
"#,
        mode = profile.mode,
        args = words.join(" "),
        env = env.join(" "),
    )
}

/// `program` or `module`, its value, and the arguments.
fn what_is_run(launch: &Launch) -> (&'static str, String, Vec<String>) {
    let words =
        |words: &[&str], path: &str| words.iter().map(|&word| word.to_owned()).chain([path.to_owned()]).collect();
    match launch {
        Launch::CurrentFile => ("program", "${file}".to_owned(), Vec::new()),
        Launch::Program(path) => ("program", path.clone(), Vec::new()),
        Launch::Module(name) => ("module", name.clone(), Vec::new()),
        Launch::Pytest(target) if target.is_empty() => ("module", "pytest".to_owned(), Vec::new()),
        Launch::Pytest(target) => ("module", "pytest".to_owned(), words(&[], target)),
        Launch::Torchrun(path) => {
            ("module", "torch.distributed.run".to_owned(), words(&["--standalone", "--nproc_per_node=auto"], path))
        }
        Launch::Accelerate(path) => ("module", "accelerate.commands.launch".to_owned(), words(&[], path)),
    }
}

fn env(profile: &Profile) -> Vec<(&'static str, String)> {
    let block = env_block(profile.mode, Os::HERE, &Machine::default(), &Default::default());
    block.shared().map(|variable| (variable.name, variable.value.clone())).collect()
}

/// A Lua string in double quotes (Lua 5.1 manual, 2.1).
fn lua(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
    format!("\"{escaped}\"")
}

/// An Emacs Lisp string: only the quote and the backslash are special.
fn lisp(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Mode;

    #[test]
    fn an_entry_for_each_client() {
        let profile = Profile { launch: Launch::Torchrun("a \"b\"/train.py".to_owned()), mode: Mode::Blocking };
        insta::assert_snapshot!(nvim_dap(&profile), @r#"
        table.insert(require("dap").configurations.python, {
          name = "cublame: torchrun a \"b\"/train.py (blocking)",
          type = "python",
          request = "launch",
          module = "torch.distributed.run",
          args = { "--standalone", "--nproc_per_node=auto", "a \"b\"/train.py" },
          console = "integratedTerminal",
          justMyCode = true,
          subProcess = true,
          env = { CUBLAME_MODE = "blocking", CUDA_LAUNCH_BLOCKING = "1" },
        })
        "#);
        insta::assert_snapshot!(dape(&profile), @r#"
        (with-eval-after-load 'dape
          (add-to-list 'dape-configs
                       '(cublame-blocking
                         modes (python-mode python-ts-mode)
                         command "python"
                         command-args ("-m" "debugpy.adapter" "--host" "127.0.0.1" "--port" :autoport)
                         port :autoport
                         :type "python"
                         :request "launch"
                         :cwd dape-cwd
                         :module "torch.distributed.run"
                         :args ["--standalone" "--nproc_per_node=auto" "a \"b\"/train.py"]
                         :console "integratedTerminal"
                         :justMyCode t
                         :env (:CUBLAME_MODE "blocking" :CUDA_LAUNCH_BLOCKING "1"))))
        "#);
        let current = Profile { launch: Launch::CurrentFile, mode: Mode::Trace };
        assert!(nvim_dap(&current).contains("program = \"${file}\",\n"));
        assert!(dape(&current).contains(":program dape-buffer-default\n"));
    }
}

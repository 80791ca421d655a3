//! Launchers: the lines that carry our variables to where the program runs, and the command lines that do not.

use super::shell::{dotenv, sh};

/// A launcher or a file of one, for which a line can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    Dotenv,
    Dockerfile,
    Compose,
    DockerRun,
    Apptainer,
    Sbatch,
    Srun,
    OpenMpi,
    Mpich,
    Ray,
    Kubernetes,
}

impl Launcher {
    pub const ALL: [Launcher; 11] = [
        Launcher::Dotenv,
        Launcher::Dockerfile,
        Launcher::Compose,
        Launcher::DockerRun,
        Launcher::Apptainer,
        Launcher::Sbatch,
        Launcher::Srun,
        Launcher::OpenMpi,
        Launcher::Mpich,
        Launcher::Ray,
        Launcher::Kubernetes,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Launcher::Dotenv => ".env file",
            Launcher::Dockerfile => "Dockerfile (for a debugging image only)",
            Launcher::Compose => "compose.yaml, under the service",
            Launcher::DockerRun => "docker run, podman run",
            Launcher::Apptainer => "apptainer, singularity",
            Launcher::Sbatch => "Slurm batch script",
            Launcher::Srun => "srun",
            Launcher::OpenMpi => "mpirun (Open MPI)",
            Launcher::Mpich => "mpiexec (MPICH, Intel MPI)",
            Launcher::Ray => "Ray",
            Launcher::Kubernetes => "Kubernetes, under the container",
        }
    }

    /// The lines for variables of a file under version control: plain names, values without commas or blanks.
    pub fn lines(self, pairs: &[(&str, &str)]) -> String {
        let each = |line: &dyn Fn(&str, &str) -> String, separator: &str| {
            pairs.iter().map(|(name, value)| line(name, value)).collect::<Vec<_>>().join(separator)
        };
        let assignments = |separator| each(&|name, value| format!("{name}={}", sh(value)), separator);
        match self {
            Launcher::Dotenv => each(&|name, value| format!("{name}={}", dotenv(value).unwrap_or_default()), "\n"),
            Launcher::Dockerfile => each(&|name, value| format!("ENV {name}={}", json(value)), "\n"),
            Launcher::Compose => {
                format!("environment:\n{}", each(&|name, value| format!("  {name}: {}", json(value)), "\n"))
            }
            Launcher::DockerRun => each(&|name, value| format!("-e {name}={}", sh(value)), " "),
            Launcher::Apptainer => format!("--env {}", assignments(",")),
            Launcher::Sbatch => format!("#SBATCH --export=ALL,{}", assignments(",")),
            Launcher::Srun => format!("srun --export=ALL,{}", assignments(",")),
            Launcher::OpenMpi => each(&|name, value| format!("-x {name}={}", sh(value)), " "),
            Launcher::Mpich => each(&|name, value| format!("-genv {name} {}", sh(value)), " "),
            Launcher::Ray => {
                let members = each(&|name, value| format!("{}: {}", json(name), json(value)), ", ");
                format!("ray.init(runtime_env={{\"env_vars\": {{{members}}}}})")
            }
            Launcher::Kubernetes => {
                format!("env:\n{}", each(&|name, value| format!("  - name: {name}\n    value: {}", json(value)), "\n"))
            }
        }
    }
}

/// Is it torchrun? It takes TORCHELASTIC_ERROR_FILE for itself and gives each worker another one.
pub fn is_torchrun(argv: &[String]) -> bool {
    let until_program = argv.iter().take_while(|word| !word.ends_with(".py")).map(String::as_str);
    let words: Vec<&str> = until_program.map(|word| word.rsplit(['/', '\\']).next().unwrap_or(word)).collect();
    words.contains(&"torchrun")
        || words.windows(2).any(|pair| matches!(pair, ["-m", "torch.distributed.run" | "torch.distributed.launch"]))
}

/// A command line that starts the program without our variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCarried {
    pub launcher: String,
    /// One sentence without its final dot.
    pub what: String,
    /// What to add to the command line, if a flag can carry the variables.
    pub add: Option<String>,
}

/// Does this command line lose the variables `pairs` on the way to the program?
///
/// None: it carries them, or it is nothing that is known to lose them.
/// Wrappers that pass their environment on (`env`, `nice`, `time`, `numactl`...) are looked through.
pub fn not_carried(argv: &[String], pairs: &[(&str, &str)]) -> Option<NotCarried> {
    let (command, arguments) = argv.split_first()?;
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let flags: &[String] = arguments;
    let has = |wanted: &[&str]| flags.iter().any(|flag| wanted.contains(&flag.as_str()));
    let told = |what: &str, launcher: Option<Launcher>| {
        let add = launcher.map(|launcher| launcher.lines(pairs).trim_start_matches("srun ").to_owned());
        Some(NotCarried { launcher: name.to_owned(), what: what.to_owned(), add })
    };
    match name {
        "docker" | "podman" | "nerdctl" if has(&["run", "exec"]) => {
            let given = |name: &str| flags.windows(2).any(|pair| is_env_flag(&pair[0]) && names(&pair[1], name));
            let joined =
                |name: &str| flags.iter().any(|flag| flag.strip_prefix("--env=").is_some_and(|rest| names(rest, name)));
            let lost = pairs.iter().any(|(name, _)| !given(name) && !joined(name));
            lost.then(|| {
                told(
                    "a container starts with an environment of its own, without cublame's variables",
                    Some(Launcher::DockerRun),
                )
            })?
        }
        "apptainer" | "singularity" if has(&["-e", "--cleanenv", "-C", "--containall"]) => {
            told("the container is started with a clean environment", Some(Launcher::Apptainer))
        }
        "srun" | "sbatch" | "salloc" => {
            let export = flag_value(flags, "--export")?;
            let carries = export.split(',').any(|item| item == "ALL");
            let all_named = pairs.iter().all(|(name, _)| export.split(',').any(|item| names(item, name)));
            if carries || all_named { None } else { told("--export leaves the variables out", Some(Launcher::Srun)) }
        }
        "mpirun" | "mpiexec" | "mpiexec.hydra" | "orterun" | "prterun" => {
            let is_named = |variable: &str| flags.iter().any(|flag| names(flag, variable));
            let spans_hosts =
                has(&["-H", "-host", "--host", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f"]);
            if !spans_hosts || pairs.iter().all(|(name, _)| is_named(name)) {
                return None;
            }
            let launcher = if name == "mpiexec.hydra" { Launcher::Mpich } else { Launcher::OpenMpi };
            told("processes on other hosts do not get this environment", Some(launcher))
        }
        "ssh" | "pdsh" | "clush" => told("the other host has an environment of its own", None),
        "sudo" if !has(&["-E", "--preserve-env"]) => {
            told("sudo starts the program with a fresh environment; `sudo -E` keeps it where the policy allows", None)
        }
        "kubectl" | "oc" if has(&["run", "exec", "apply", "create"]) => {
            told("the pod has an environment of its own", Some(Launcher::Kubernetes))
        }
        "ray" if has(&["submit", "exec"]) || flags.starts_with(&["job".to_owned()]) => {
            told("a Ray job takes its variables from runtime_env", Some(Launcher::Ray))
        }
        "qsub" if !has(&["-V"]) => told("qsub passes the environment only with -V", None),
        "tmux" | "screen" => {
            told("a new window gets the environment of the server, which may be running already", None)
        }
        "systemd-run" | "at" | "batch" => told("the program is started by a service, with its environment", None),
        "tox" => told("tox passes only the variables that its pass_env names", None),
        "env" if has(&["-i", "-", "--ignore-environment"]) => told("`env -i` starts with an empty environment", None),
        "env" | "nice" | "ionice" | "nohup" | "setsid" | "stdbuf" | "time" | "timeout" | "taskset" | "numactl"
        | "uv" | "poetry" => {
            let next = arguments.iter().position(|argument| is_known(argument))?;
            not_carried(&arguments[next..], pairs)
        }
        _ => None,
    }
}

fn is_known(argument: &str) -> bool {
    let name = argument.rsplit('/').next().unwrap_or(argument);
    const LAUNCHERS: [&str; 26] = [
        "docker",
        "podman",
        "nerdctl",
        "apptainer",
        "singularity",
        "srun",
        "sbatch",
        "salloc",
        "mpirun",
        "mpiexec",
        "mpiexec.hydra",
        "orterun",
        "prterun",
        "ssh",
        "pdsh",
        "clush",
        "sudo",
        "kubectl",
        "oc",
        "ray",
        "qsub",
        "tmux",
        "screen",
        "systemd-run",
        "tox",
        "env",
    ];
    LAUNCHERS.contains(&name)
}

fn is_env_flag(flag: &str) -> bool {
    matches!(flag, "-e" | "--env")
}

/// `NAME` or `NAME=value`.
fn names(item: &str, name: &str) -> bool {
    item.split('=').next() == Some(name)
}

fn flag_value<'f>(flags: &'f [String], flag: &str) -> Option<&'f str> {
    let joined = flags.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('='));
    joined.or_else(|| {
        let at = flags.iter().position(|word| word == flag)?;
        flags.get(at + 1).map(String::as_str)
    })
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: [(&str, &str); 2] = [("CUBLAME_MODE", "blocking"), ("CUDA_LAUNCH_BLOCKING", "1")];

    #[test]
    fn every_launcher_has_its_line() {
        let all: String = Launcher::ALL
            .iter()
            .map(|launcher| format!("{}:\n{}\n", launcher.title(), launcher.lines(&PAIRS)))
            .collect();
        insta::assert_snapshot!(all, @r#"
        .env file:
        CUBLAME_MODE=blocking
        CUDA_LAUNCH_BLOCKING=1
        Dockerfile (for a debugging image only):
        ENV CUBLAME_MODE="blocking"
        ENV CUDA_LAUNCH_BLOCKING="1"
        compose.yaml, under the service:
        environment:
          CUBLAME_MODE: "blocking"
          CUDA_LAUNCH_BLOCKING: "1"
        docker run, podman run:
        -e CUBLAME_MODE=blocking -e CUDA_LAUNCH_BLOCKING=1
        apptainer, singularity:
        --env CUBLAME_MODE=blocking,CUDA_LAUNCH_BLOCKING=1
        Slurm batch script:
        #SBATCH --export=ALL,CUBLAME_MODE=blocking,CUDA_LAUNCH_BLOCKING=1
        srun:
        srun --export=ALL,CUBLAME_MODE=blocking,CUDA_LAUNCH_BLOCKING=1
        mpirun (Open MPI):
        -x CUBLAME_MODE=blocking -x CUDA_LAUNCH_BLOCKING=1
        mpiexec (MPICH, Intel MPI):
        -genv CUBLAME_MODE blocking -genv CUDA_LAUNCH_BLOCKING 1
        Ray:
        ray.init(runtime_env={"env_vars": {"CUBLAME_MODE": "blocking", "CUDA_LAUNCH_BLOCKING": "1"}})
        Kubernetes, under the container:
        env:
          - name: CUBLAME_MODE
            value: "blocking"
          - name: CUDA_LAUNCH_BLOCKING
            value: "1"
        "#);
    }

    fn told(command: &str) -> Option<NotCarried> {
        not_carried(&command.split(' ').map(str::to_owned).collect::<Vec<_>>(), &PAIRS)
    }

    #[test]
    fn what_carries_the_variables_is_left_in_peace() {
        for command in [
            "python train.py",
            "torchrun --nproc_per_node=2 train.py",
            "accelerate launch train.py",
            "srun python train.py",
            "srun --export=ALL,A=b python train.py",
            "srun --export=CUBLAME_MODE,CUDA_LAUNCH_BLOCKING=1 python train.py",
            "mpirun -np 2 python train.py",
            "mpirun -H a,b -x CUBLAME_MODE -x CUDA_LAUNCH_BLOCKING=1 python train.py",
            "docker ps",
            "docker run -e CUBLAME_MODE --env CUDA_LAUNCH_BLOCKING=1 image python train.py",
            "docker run --env=CUBLAME_MODE=x --env=CUDA_LAUNCH_BLOCKING image",
            "sudo -E python train.py",
            "nice -n 5 python train.py",
            "apptainer exec --nv image.sif python train.py",
            "env A=b python train.py",
            "",
        ] {
            assert_eq!(told(command), None, "{command}");
        }
    }

    #[test]
    fn what_loses_them_is_told() {
        let check = |command: &str, launcher: &str, add: Option<&str>| {
            let told = told(command).unwrap();
            assert_eq!((told.launcher.as_str(), told.add.as_deref()), (launcher, add), "{command}");
            assert!(!told.what.ends_with('.'));
        };
        let docker = "-e CUBLAME_MODE=blocking -e CUDA_LAUNCH_BLOCKING=1";
        let export = "--export=ALL,CUBLAME_MODE=blocking,CUDA_LAUNCH_BLOCKING=1";
        check("docker run --gpus all image python train.py", "docker", Some(docker));
        check("/usr/bin/podman run -e CUBLAME_MODE image", "podman", Some(docker));
        check("time -p docker exec -it box python train.py", "docker", Some(docker));
        check("srun --export=NONE python train.py", "srun", Some(export));
        check("srun --export PATH,HOME python train.py", "srun", Some(export));
        check(
            "mpirun --hostfile hosts python train.py",
            "mpirun",
            Some("-x CUBLAME_MODE=blocking -x CUDA_LAUNCH_BLOCKING=1"),
        );
        check("ssh gpu1 python train.py", "ssh", None);
        check("sudo python train.py", "sudo", None);
        check("env -i python train.py", "env", None);
        check("ray job submit -- python train.py", "ray", Some(Launcher::Ray.lines(&PAIRS).as_str()));
        check("tox -e py312", "tox", None);
    }
}

//! A runner that is one of several tasks of a job, as under `srun cublame run -- python train.py`: the runners share one
//! run folder, on one machine or on a shared disk, so that one report tells of all ranks.
//!
//! Each task has a folder of its own in it, `tasks/<rank>`, with its events, its log and its journals.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, SystemTime};

use super::folder::RunFolder;
use crate::os::files;

/// Which task of which job this runner is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    job: String,
    pub rank: u32,
}

impl Task {
    /// By the variables of Slurm's steps and of Open MPI. A runner within a run belongs to that run.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        if variable("CUBLAME_RUN").is_some() {
            return None;
        }
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let word = |name: &str| {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            variable(name).map(|value| value.replace(|letter| !plain(letter), "-")).filter(|value| !value.is_empty())
        };
        let one_of_many = |name: &str| number(name).is_some_and(|tasks| tasks > 1);
        // Open MPI first: mpirun in a batch job of Slurm has the variables of both.
        if one_of_many("OMPI_COMM_WORLD_SIZE") {
            let job = word("PMIX_NAMESPACE").or_else(|| word("OMPI_MCA_ess_base_jobid"))?;
            return Some(Self { job: format!("mpi-{job}"), rank: number("OMPI_COMM_WORLD_RANK")? });
        }
        if one_of_many("SLURM_STEP_NUM_TASKS") {
            let job = format!("slurm-{}-{}", word("SLURM_JOB_ID")?, word("SLURM_STEP_ID")?);
            return Some(Self { job, rank: number("SLURM_PROCID")? });
        }
        None
    }

    /// The job's run folder: the one that a task before this one announced, else `created`, announced to the others.
    /// `created` is deleted where it is not needed. True: it is the announced one.
    pub fn join(&self, created: RunFolder) -> io::Result<(RunFolder, bool)> {
        let sign = created.siblings().join(format!("{SIGN}{}", self.job));
        let aside = created.siblings().join(format!("{SIGN}{}.{}", self.job, created.id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        let announced = file.write_all(created.id().as_bytes()).and_then(|()| {
            for _ in 0..2 {
                match fs::hard_link(&aside, &sign) {
                    Ok(()) => return Ok(None),
                    Err(failure) if failure.kind() == ErrorKind::AlreadyExists => {}
                    Err(failure) => return Err(failure),
                }
                if let Some(other) = announced_run(&created, &self.job) {
                    return Ok(Some(other));
                }
                // Of a job that had the same number long ago.
                fs::remove_file(&sign).ok();
            }
            Err(io::Error::other("other runs take the job's name again and again"))
        });
        fs::remove_file(&aside).ok();
        match announced? {
            Some(other) => {
                created.delete()?;
                Ok((other, false))
            }
            None => Ok((created, true)),
        }
    }
}

/// What the name of a job's announcement starts with.
const SIGN: &str = ".job-";

/// The tasks of a job start together; a run that ended before is another job's.
const LONGEST_START: Duration = Duration::from_secs(3600);

fn announced_run(created: &RunFolder, job: &str) -> Option<RunFolder> {
    let id = files::read_beneath(created.siblings(), &[&format!("{SIGN}{job}")], 256).ok()?;
    let id = String::from_utf8(id).ok()?;
    let run = RunFolder::list(created.siblings()).into_iter().find(|run| run.id() == id)?;
    let ended = run.report_path().metadata().and_then(|report| report.modified()).ok();
    let long_ago = ended.and_then(|ended| SystemTime::now().duration_since(ended).ok());
    long_ago.is_none_or(|ago| ago < LONGEST_START).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::place::Surroundings;

    fn task(variables: &[(&str, &str)]) -> Option<Task> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Task::of(find)
    }

    #[test]
    fn slurm_and_open_mpi_tell_which_task_it_is() {
        let slurm = [("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "3")];
        let of = |tasks: &'static str| task(&[&slurm[..], &[("SLURM_STEP_NUM_TASKS", tasks)]].concat());
        assert_eq!(of("4"), Some(Task { job: "slurm-7-0".to_owned(), rank: 3 }));
        assert_eq!(of("1"), None);
        let mpi = [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1"), ("PMIX_NAMESPACE", "prte/../1@1")];
        assert_eq!(task(&mpi), Some(Task { job: "mpi-prte----1-1".to_owned(), rank: 1 }));
        assert_eq!(task(&[&mpi[..], &[("CUBLAME_RUN", "/r")]].concat()), None);
    }

    #[test]
    fn all_tasks_of_a_job_have_one_run() {
        let project = tempfile::tempdir().unwrap();
        let surroundings = Surroundings { cwd: project.path().to_owned(), ..Surroundings::default() };
        let joined: Vec<(RunFolder, bool)> = std::thread::scope(|scope| {
            let join = |rank| {
                let created = RunFolder::create(&surroundings, SystemTime::now()).unwrap().folder;
                Task { job: "slurm-1-0".to_owned(), rank }.join(created).unwrap()
            };
            let threads: Vec<_> = (0..16).map(|rank| scope.spawn(move || join(rank))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(joined.iter().filter(|(_, announced)| *announced).count(), 1);
        assert!(joined.iter().all(|(run, _)| *run == joined[0].0));
        assert_eq!(RunFolder::list(joined[0].0.siblings()).len(), 1);
        let other = RunFolder::create(&surroundings, SystemTime::now()).unwrap().folder;
        assert!(Task { job: "slurm-2-0".to_owned(), rank: 0 }.join(other).unwrap().1);
    }
}

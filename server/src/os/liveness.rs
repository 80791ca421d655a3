//! Noticing that another process is gone.

use std::time::Duration;

/// Resolves when the process is gone. None when it cannot be seen from here at all, as from inside a container: then
/// its absence says nothing.
pub fn ended(pid: u32) -> Option<impl Future<Output = ()> + Send + 'static> {
    let process = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    answers(process).then_some(async move {
        let mut look = tokio::time::interval(Duration::from_millis(400));
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let started = super::processes::identify(pid);
        loop {
            look.tick().await;
            // A later process of the same number, and one that has ended and was not waited for, are not it.
            let there = if started.start == 0 { answers(process) } else { super::processes::is_alive(started) };
            if !there {
                return;
            }
        }
    })
}

/// A process of another user answers too, with a refusal.
fn answers(process: rustix::process::Pid) -> bool {
    matches!(rustix::process::test_kill_process(process), Ok(()) | Err(rustix::io::Errno::PERM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_process_is_noticed_though_nobody_waits_for_it() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let ended = ended(child.id()).expect("a visible process");
        child.kill().expect("to end our own child");
        tokio::time::timeout(Duration::from_secs(5), ended).await.expect("the end was not noticed");
        child.wait().expect("to wait for our own child");
    }

    #[test]
    fn what_cannot_be_seen_is_not_watched() {
        assert!(ended(0).is_none());
        assert!(ended(u32::MAX).is_none());
    }
}

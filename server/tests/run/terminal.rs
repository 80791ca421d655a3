//! A terminal, and somebody who types at it.

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, OutputModes, Winsize};

use crate::project::{PATIENCE, Project};

pub struct Terminal {
    keys: File,
    closing: PipeWriter,
    pieces: Receiver<Vec<u8>>,
    shown: Vec<u8>,
    child: Child,
}

impl Terminal {
    /// Runs a bash script in a session of its own, of which the terminal is the controlling one.
    pub fn bash(project: &Project, script: &str) -> Self {
        let mut command = project.command("setsid");
        command.args(["--ctty", "bash", "-c", script]);
        Self::start(command, |_| {})
    }

    /// An interactive shell with job control.
    pub fn interactive_bash(project: &Project) -> Self {
        let mut command = project.command("setsid");
        command.args(["--ctty", "bash", "--norc", "--noprofile", "-i"]).env("PS1", "$ ");
        Self::start(command, |_| {})
    }

    /// A terminal that shows line feeds as they are.
    pub fn untranslated(project: &Project, script: &str) -> Self {
        let mut command = project.command("setsid");
        command.args(["--ctty", "bash", "-c", script]);
        Self::start(command, |modes| modes.remove(OutputModes::OPOST))
    }

    fn start(mut command: Command, change: impl Fn(&mut OutputModes)) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&ours).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags).unwrap();
        let mut modes = rustix::termios::tcgetattr(&theirs).unwrap();
        change(&mut modes.output_modes);
        rustix::termios::tcsetattr(&theirs, OptionalActions::Now, &modes).unwrap();

        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(ours);
        let (sender, pieces) = mpsc::channel();
        let mut screen = keys.try_clone().unwrap();
        let (closed, closing) = io::pipe().unwrap();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                let mut ready = [PollFd::new(&closed, PollFlags::empty()), PollFd::new(&screen, PollFlags::IN)];
                poll(&mut ready, None).unwrap();
                if !ready[0].revents().is_empty() {
                    break;
                }
                match screen.read(&mut piece) {
                    Ok(count @ 1..) => sender.send(piece[..count].to_vec()).ok(),
                    _ => break,
                };
            }
        });
        Self { keys, closing, pieces, shown: Vec::new(), child }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.keys, size).unwrap();
    }

    /// Waits until the terminal has shown this, and returns what came before it. What was waited for is not seen again.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            if let Some(at) = shown.find(text) {
                self.shown = shown.as_bytes()[at + text.len()..].to_vec();
                return shown[..at].to_owned();
            }
            let left = PATIENCE.saturating_sub(start.elapsed());
            match self.pieces.recv_timeout(left) {
                Ok(piece) => self.shown.extend(piece),
                Err(_) => panic!("the terminal never showed {text:?} but {shown:?}"),
            }
        }
    }

    /// The window is closed.
    pub fn hang_up(mut self) {
        drop((self.keys, self.closing));
        self.child.wait().unwrap();
    }

    /// Waits for the end. Returns what was shown since the last wait.
    pub fn finish(mut self) -> (ExitStatus, String) {
        while let Ok(piece) = self.pieces.recv_timeout(PATIENCE) {
            self.shown.extend(piece);
        }
        (self.child.wait().unwrap(), String::from_utf8_lossy(&self.shown).into_owned())
    }
}

pub const CTRL_C: &str = "\x03";
pub const CTRL_Z: &str = "\x1a";

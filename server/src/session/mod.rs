//! A run from its command line to its report: the folder, the child process, its streams, what they say.

pub mod place;

pub mod choice;
pub mod folder;
pub mod task;

pub mod events;
pub mod standing;
pub mod stored_log;
pub mod telemetry;
pub mod traced;

pub mod index;
pub mod retention;

pub mod environment;
pub mod facts;
pub mod journals;
pub mod mode;

pub mod supervise;

pub mod recorder;
pub mod streams;

pub mod hang;

pub mod guardian;
pub mod helper;
pub mod relay;

pub mod told;
pub mod verdict;

pub use folder::{RunFolder, State, Stored};
pub use told::{Told, tell};

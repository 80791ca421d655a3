//! The launch journal: what a traced process asked of the GPU, in memory that outlives it.
//!
//! [`layout`] says where everything lies, [`write`] fills it from the traced process, [`lines`] turns an instruction of
//! CPython into a line, and [`read`] makes values of the bytes.
//! The reader is pure and total: it takes bytes, returns values, and no byte makes it panic or loop.
//! It lives beside the writer, not in `cublame-core`, so that one crate owns the layout; the core depends on it.
//!
//! The journal is bounded. Its ring keeps the last launches; the tables of stacks, code objects, kernels, streams, threads
//! and graph rows only grow, and when one is full its new entries are counted as lost and the reader says so.

pub mod layout;

pub mod write;

pub mod lines;
pub mod read;

pub use layout::{FrameState, GraphKind, Kind, MarkState, Shape};
pub use read::{Journal, read};
pub use write::Writer;

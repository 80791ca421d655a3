//! What the product knows and says, as data: the kinds of failure, the known device assertions, the reasons and the
//! advice.
//!
//! Every text exists in each [`Language`]; a test compares the files. A contributor adds a kind without touching Rust.

pub mod explain;
pub mod facts;
pub mod text;

pub use explain::{Description, describe, documentation_url};
pub use facts::facts;
pub use text::{Language, Texts};

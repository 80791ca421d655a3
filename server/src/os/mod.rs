//! The only platform code.

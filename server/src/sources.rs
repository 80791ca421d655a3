//! Reads the source files that the core asks for.

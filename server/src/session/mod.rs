//! A run from its command line to its report: the folder, the child process, its streams, what they say.

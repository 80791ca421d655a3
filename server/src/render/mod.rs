//! Verdicts as a person or a program reads them.

pub mod cell;
pub mod doctor;
pub mod findings;
pub mod markdown;
pub mod page;
pub mod queues;
pub mod tensors;
pub mod terminal;

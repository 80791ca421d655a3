//! The language server as its clients see it.

mod clients;
mod life;
mod orders;
mod protocol;
mod requests;
mod rules;

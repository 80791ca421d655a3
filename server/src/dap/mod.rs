//! The debug session: a proxy of the Debug Adapter Protocol before debugpy's adapter, for any editor.
//!
//! Everything passes byte for byte and in order. What is added: the mode's variables in a `launch` request, questions of
//! our own to a debugger that stands at an exception, and the verdict as an `output` event. What a message tells is worked
//! out in [`cublame_core::dap`]; what becomes of it in the run folder is in [`record`].
//! For a person without a debugger, [`holder`] is the client itself.

pub mod framing;

pub mod adapter;
pub mod proxy;

pub mod desk;
pub mod record;

pub mod holder;
pub mod instrument;

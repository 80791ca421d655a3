//! One file a method, or a family of methods.

pub mod initialize;
pub mod inlay_hint;

pub mod configuration;
pub mod folders;
pub mod text;

pub mod code_action;
pub mod code_lens;
pub mod execute_command;
pub mod hover;
pub mod lint_fixes;
pub mod notebook;
mod run_configurations;
mod verdict_fixes;

//! `cublame configure` and `cublame env` on real files, in real shells.

mod files;
mod fixtures;
mod project;
mod shells;

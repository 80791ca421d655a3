//! How well an expression fits what the device said.

use super::kernels::{Operation, operations};
use super::{Family, Query};

/// A weight from which a suspect is worth believing, and the lead over the next that makes it clear. Weights are per
/// cent: of how well the operation fits the evidence, times how sure it is that the expression is that operation.
pub const PROBABLE: u32 = 60;
pub const CLEAR: u32 = 15;

/// An operation that an expression may be, and how sure that is, in per cent.
pub type Guess = (Operation, u32);

/// The weight of an operation under the evidence, in per cent; 0 for one that cannot be it.
pub fn weight(query: &Query, operation: Operation) -> u32 {
    use Operation::*;
    match Evidence::of(query) {
        Evidence::Assert { family, kernel } => {
            let launched = kernel.map_or(&[][..], operations);
            if launched.contains(&operation) {
                return 100;
            }
            let known = if launched.is_empty() { 90 } else { 45 };
            match (family, operation) {
                (Some(family), _) if operation.family() == family && family != Family::Other => known,
                (Some(Family::Index | Family::Offset), Embedding | EmbeddingBag) => known * 3 / 4,
                (Some(Family::Index | Family::Label | Family::Probability), LibraryModel) => 45,
                (Some(Family::Mask), IndexWrite) => 50,
                (None | Some(Family::Other), AsyncAssert | Selection) => 70,
                (_, CustomKernel(_)) if launched.is_empty() => 80,
                (_, Compiled) => 30,
                (None, LibraryModel) => 40,
                (None, Jitted | Device) => 0,
                (None, _) => 80,
                _ => 0,
            }
        }
        Evidence::Launch => match operation {
            CustomKernel(_) => 100,
            Compiled => 55,
            Embedding | EmbeddingBag | IndexSelect | IndexRead | IndexWrite | GatherScatter | IndexAdd | Take => 40,
            LabelLoss | MarginLoss => 35,
            LibraryModel => 20,
            _ => 0,
        },
        Evidence::Jax => match operation {
            Jitted => 100,
            Device => 40,
            _ => 0,
        },
        Evidence::Nothing => match operation {
            CustomKernel(_) => 60,
            Embedding | IndexSelect | IndexRead | IndexWrite | GatherScatter | IndexAdd | Take | LabelLoss => 50,
            LibraryModel | Compiled => 30,
            _ => 0,
        },
    }
}

enum Evidence<'q> {
    Assert {
        family: Option<Family>,
        kernel: Option<&'q str>,
    },
    /// A kernel went wrong, or was launched wrongly and nobody checked: those that the user wrote come first.
    Launch,
    Jax,
    Nothing,
}

impl<'q> Evidence<'q> {
    fn of(query: &'q Query) -> Self {
        match query.kind.as_str() {
            _ if query.family.is_some() || query.kernel.is_some() => {
                Evidence::Assert { family: query.family, kernel: query.kernel.as_deref() }
            }
            "device-assert" => Evidence::Assert { family: None, kernel: None },
            "illegal-address"
            | "misaligned-address"
            | "illegal-instruction"
            | "invalid-address-space"
            | "launch-failure"
            | "launch-timeout"
            | "invalid-configuration"
            | "too-many-resources"
            | "invalid-argument"
            | "no-kernel-image"
            | "invalid-resource-handle"
            | "unknown-error"
            | "triton-out-of-resources" => Evidence::Launch,
            "oom" | "jax-resource-exhausted" => Evidence::Jax,
            _ => Evidence::Nothing,
        }
    }
}

//! Which operations launch which kernels: the table that makes an assertion's kernel point at source code.
//!
//! Kernel and file names are those of PyTorch's `aten/src/ATen/native/cuda` from 1.0 (THC) to today.

use crate::verdict::DeviceAssert;

use super::Family;

/// An operation of source code, as far as it decides which kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Embedding,
    EmbeddingBag,
    IndexSelect,
    /// `x[i]` read.
    IndexRead,
    /// `x[i] = y` and `index_put_`.
    IndexWrite,
    /// gather, scatter and what is built on them.
    GatherScatter,
    /// index_add, index_copy, index_fill, index_reduce.
    IndexAdd,
    /// take and put_.
    Take,
    LabelLoss,
    MarginLoss,
    BinaryLoss,
    Multinomial,
    Bernoulli,
    MaskedScatter,
    RepeatInterleave,
    AsyncAssert,
    /// topk, kthvalue, fractional pooling: they assert on NaN.
    Selection,
    CustomKernel(Launcher),
    /// A compiled function: what runs is generated.
    Compiled,
    /// A JAX function under jit.
    Jitted,
    /// Another operation that runs on the device.
    Device,
    /// A library's model, which holds embeddings and computes its own loss.
    LibraryModel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Launcher {
    Triton,
    CuPy,
    Numba,
    Extension,
}

impl Operation {
    pub fn why(self) -> &'static str {
        match self {
            Operation::Embedding => "suspect.embedding",
            Operation::EmbeddingBag => "suspect.embedding-bag",
            Operation::IndexSelect => "suspect.index-select",
            Operation::IndexRead => "suspect.index-expression",
            Operation::IndexWrite => "suspect.index-assignment",
            Operation::GatherScatter => "suspect.gather-scatter",
            Operation::IndexAdd => "suspect.index-add",
            Operation::Take => "suspect.take",
            Operation::LabelLoss => "suspect.label-loss",
            Operation::MarginLoss => "suspect.margin-loss",
            Operation::BinaryLoss => "suspect.binary-loss",
            Operation::Multinomial => "suspect.multinomial",
            Operation::Bernoulli => "suspect.bernoulli",
            Operation::MaskedScatter => "suspect.masked-scatter",
            Operation::RepeatInterleave => "suspect.repeat-interleave",
            Operation::AsyncAssert => "suspect.async-assert",
            Operation::Selection => "suspect.selection",
            Operation::CustomKernel(Launcher::Triton) => "suspect.triton-kernel",
            Operation::CustomKernel(Launcher::CuPy) => "suspect.cupy-kernel",
            Operation::CustomKernel(Launcher::Numba) => "suspect.numba-kernel",
            Operation::CustomKernel(Launcher::Extension) => "suspect.extension-call",
            Operation::Compiled => "suspect.compiled-function",
            Operation::Jitted => "suspect.jitted-call",
            Operation::Device => "suspect.device-operation",
            Operation::LibraryModel => "suspect.library-model",
        }
    }

    /// What its assertions are about.
    pub fn family(self) -> Family {
        match self {
            Operation::Embedding
            | Operation::IndexSelect
            | Operation::IndexRead
            | Operation::IndexWrite
            | Operation::GatherScatter
            | Operation::IndexAdd
            | Operation::Take => Family::Index,
            Operation::LabelLoss | Operation::MarginLoss => Family::Label,
            Operation::BinaryLoss | Operation::Multinomial | Operation::Bernoulli => Family::Probability,
            Operation::EmbeddingBag => Family::Offset,
            Operation::MaskedScatter => Family::Mask,
            Operation::RepeatInterleave => Family::Repeat,
            _ => Family::Other,
        }
    }
}

pub const REASONS: &[&str] = &[
    "suspect.embedding",
    "suspect.embedding-bag",
    "suspect.index-select",
    "suspect.index-expression",
    "suspect.index-assignment",
    "suspect.gather-scatter",
    "suspect.index-add",
    "suspect.take",
    "suspect.label-loss",
    "suspect.margin-loss",
    "suspect.binary-loss",
    "suspect.multinomial",
    "suspect.bernoulli",
    "suspect.masked-scatter",
    "suspect.repeat-interleave",
    "suspect.async-assert",
    "suspect.selection",
    "suspect.triton-kernel",
    "suspect.cupy-kernel",
    "suspect.numba-kernel",
    "suspect.extension-call",
    "suspect.compiled-function",
    "suspect.jitted-call",
    "suspect.device-operation",
    "suspect.library-model",
];

/// The operations that a kernel, or a file of kernels, belongs to; empty when the name says nothing.
pub fn operations(kernel: &str) -> &'static [Operation] {
    use Operation::*;
    let name = kernel.to_ascii_lowercase();
    let table: &[(&[&str], &'static [Operation])] = &[
        (&["masked_scatter"], &[MaskedScatter]),
        (&["topk", "kthvalue", "fractionalmaxpool", "fractional_max_pool"], &[Selection]),
        (&["embeddingbag", "embedding_bag"], &[EmbeddingBag]),
        (&["embedding"], &[Embedding]),
        (&["indexselect"], &[Embedding, IndexSelect]),
        (&["vectorized_gather", "indexkernelutils"], &[Embedding, IndexSelect, IndexRead]),
        (
            &[
                "scattergather",
                "scatter_gather",
                "tensor_gather",
                "tensor_scatter",
                "vectorized_scatter",
                "tma_scatter",
            ],
            &[GatherScatter],
        ),
        (
            &[
                "indexadd",
                "indexcopy",
                "indexfill",
                "indexfunc",
                "indexreduce",
                "index_copy",
                "index_fill",
                "index_add",
            ],
            &[IndexAdd],
        ),
        (&["take_put", "take_kernel", "put_kernel"], &[Take]),
        (&["index_put", "indexing_backward"], &[IndexWrite, IndexRead]),
        (&["indexkernel", "index_elementwise", "index_kernel"], &[IndexRead, IndexWrite]),
        (&["multimargin", "multi_margin", "multilabelmargin"], &[MarginLoss]),
        (&["binary_cross_entropy", "bcecriterion", "bce_"], &[BinaryLoss]),
        (&["nll_loss", "nllloss", "classnll", "cunn_classnll", "cross_entropy"], &[LabelLoss]),
        (&["multinomial", "renormrows"], &[Multinomial]),
        (&["bernoulli"], &[Bernoulli]),
        (&["_assert_async", "tensorcompare"], &[Multinomial, AsyncAssert]),
        (&["repeat"], &[RepeatInterleave]),
        (&["triton_"], &[Compiled]),
    ];
    table
        .iter()
        .find(|(parts, _)| parts.iter().any(|part| name.contains(part)))
        .map_or(&[], |(_, operations)| operations)
}

/// What the assertions of a failure say: the family, and the kernel, or where that has no name of its own, its file.
pub fn hints(asserts: &[DeviceAssert]) -> (Option<Family>, Option<String>) {
    let Some(first) = asserts.first() else { return (None, None) };
    let named = first.kernel.as_deref().filter(|kernel| !operations(kernel).is_empty());
    let kernel = named.map_or_else(|| file_name(&first.file).to_owned(), str::to_owned);
    (family(&first.condition, &kernel), Some(kernel))
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The family that a condition names, else the one of the kernel's operations.
fn family(condition: &str, kernel: &str) -> Option<Family> {
    let has = |parts: &[&str]| parts.iter().any(|part| condition.contains(part));
    if has(&["totalElements <= srcSize"]) {
        return Some(Family::Mask);
    }
    if has(&["repeat >= 0"]) {
        return Some(Family::Repeat);
    }
    if has(&["end >= begin"]) {
        return Some(Family::Offset);
    }
    if has(&["n_classes", "target_k", "target index"]) {
        return Some(Family::Label);
    }
    if has(&["probability", "input_val", "target_val", "*input >= 0", "isnan(val)", "isinf(val)", "val >= zero"])
        || has(&["sum > accZero", "cumdist", "lt(val, zero)", "<= p && p", "p4 <= 1"])
    {
        return Some(Family::Probability);
    }
    if has(&["srcIndex", "dstIndex", "ind_dim_size", "index out of bounds", "idx_dim", "indexValue", "linearIndex"])
        || has(&["self_dim_size", "index < sizes"])
    {
        return Some(Family::Index);
    }
    operations(kernel).first().map(|operation| operation.family())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Family::*;

    #[test]
    fn assertions_of_every_age_name_their_family_and_kernel() {
        let check = |file: &str, kernel: &str, condition: &str, family: Family, operation: Operation| {
            let assert = DeviceAssert {
                file: file.into(),
                line: 1,
                kernel: (!kernel.is_empty()).then(|| kernel.into()),
                condition: condition.into(),
                count: 1,
            };
            let (found, kernel) = hints(&[assert]);
            assert_eq!(found, Some(family), "{file} {condition}");
            let operations = operations(kernel.as_deref().unwrap_or(""));
            assert!(operations.contains(&operation), "{file}: {kernel:?} gives {operations:?}");
        };
        let cu = "/pytorch/aten/src/ATen/native/cuda/";
        let at = |name: &str| format!("{cu}{name}");
        check(&at("Indexing.cu"), "indexSelectSmallIndex", "srcIndex < srcSelectDimSize", Index, Operation::Embedding);
        check(
            "/pytorch/aten/src/THC/THCTensorIndex.cu",
            "void indexSelectLargeIndex(TensorInfo<T, IndexType>, ...) [with T = float]",
            "srcIndex < srcSelectDimSize",
            Index,
            Operation::Embedding,
        );
        check(
            &at("IndexKernelUtils.cu"),
            "vectorized_gather_kernel",
            "ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of bounds\"",
            Index,
            Operation::IndexRead,
        );
        check(
            &at("IndexKernel.cu"),
            "operator()",
            "-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"",
            Index,
            Operation::IndexRead,
        );
        check(
            &at("ScatterGatherKernel.cu"),
            "operator()",
            "idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"",
            Index,
            Operation::GatherScatter,
        );
        check(&at("Indexing.cu"), "indexFuncLargeIndex", "dstIndex < dstAddDimSize", Index, Operation::IndexAdd);
        check(
            &at("IndexKernel.cu"),
            "cuda_take_put_kernel",
            "idx < numel && idx >= -numel && \"cuda_take_put_kernel() index out of bounds\"",
            Index,
            Operation::Take,
        );
        check(
            &at("Loss.cu"),
            "nll_loss_forward_reduce_cuda_kernel_2d",
            "t >= 0 && t < n_classes",
            Label,
            Operation::LabelLoss,
        );
        check(
            "C:\\w\\b\\windows\\pytorch\\aten\\src\\ATen\\native\\cuda\\NLLLoss2d.cu",
            "",
            "t >= 0 && t < n_classes",
            Label,
            Operation::LabelLoss,
        );
        check(
            &at("MultiMarginLoss.cu"),
            "MultiMarginLoss_forward_kernel",
            "target_k >= 0 && target_k < dim && \"target index is out of bounds\"",
            Label,
            Operation::MarginLoss,
        );
        check(
            "/pytorch/aten/src/THCUNN/BCECriterion.cu",
            "Acctype bce_functor<Dtype, Acctype>::operator()(Tuple)",
            "*input >= 0. && *input <= 1.",
            Probability,
            Operation::BinaryLoss,
        );
        check(
            &at("Loss.cu"),
            "binary_cross_entropy_out_cuda",
            "input_val >= zero && input_val <= one",
            Probability,
            Operation::BinaryLoss,
        );
        check(&at("MultinomialKernel.cu"), "renormRowsL1", "!(val < zero)", Probability, Operation::Multinomial);
        check(
            &at("TensorCompare.cu"),
            "_assert_async_cuda_kernel",
            "probability tensor contains either `inf`, `nan` or element < 0",
            Probability,
            Operation::Multinomial,
        );
        check(
            &at("Distributions.cu"),
            "bernoulli_tensor_cuda_kernel",
            "0 <= p1 && p1 <= 1",
            Probability,
            Operation::Bernoulli,
        );
        check(
            &at("IndexKernel.cu"),
            "masked_scatter_size_check",
            "totalElements <= srcSize",
            Mask,
            Operation::MaskedScatter,
        );
        check(&at("Repeat.cu"), "compute_cuda_kernel", "repeat >= 0", Repeat, Operation::RepeatInterleave);
        check(&at("EmbeddingBag.cu"), "", "end >= begin", Offset, Operation::EmbeddingBag);
    }

    #[test]
    fn every_reason_is_listed() {
        use Operation::*;
        for operation in [
            Embedding,
            EmbeddingBag,
            IndexSelect,
            IndexRead,
            IndexWrite,
            GatherScatter,
            IndexAdd,
            Take,
            LabelLoss,
            MarginLoss,
            BinaryLoss,
            Multinomial,
            Bernoulli,
            MaskedScatter,
            RepeatInterleave,
            AsyncAssert,
            Selection,
            Compiled,
            Jitted,
            Device,
            LibraryModel,
        ] {
            assert!(REASONS.contains(&operation.why()));
        }
        for launcher in [Launcher::Triton, Launcher::CuPy, Launcher::Numba, Launcher::Extension] {
            assert!(REASONS.contains(&CustomKernel(launcher).why()));
        }
    }
}

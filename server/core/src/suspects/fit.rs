//! How well an expression fits what the device said.

use ruff_python_ast::{Expr, ExprCall, ExprSubscript, UnaryOp};

use crate::python::libraries::{Origin, origin};
use crate::python::table::Bound;
use crate::python::value::{FunctionRef, Scope, Value};
use crate::python::{Program, tree};

use super::kernels::{Launcher, Operation, operations};
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

/// What a call may be. Functions whose source is at hand are not guessed at here: the walk enters them.
pub fn call<'a>(program: &Program<'a>, call: &'a ExprCall, scope: &Scope<'a>) -> Vec<Guess> {
    let callee = program.value(&call.func, scope);
    of_callee(program, &callee, call, scope, 0)
}

fn of_callee<'a>(
    program: &Program<'a>,
    callee: &Value<'a>,
    call: &'a ExprCall,
    scope: &Scope<'a>,
    depth: u32,
) -> Vec<Guess> {
    if depth > 4 {
        return Vec::new();
    }
    match callee {
        Value::Any(values) => {
            values.iter().flat_map(|value| of_callee(program, value, call, scope, depth + 1)).collect()
        }
        Value::Path { path, call: made } => {
            if path == "torch.nn.Sequential()"
                && let Some((made, scope)) = made
            {
                let members = made.arguments.args.iter().map(|member| program.value(member, scope));
                return members.flat_map(|member| of_callee(program, &member, call, scope, depth + 1)).collect();
            }
            let mut guesses = of_path(path, call);
            if let Some(inner) = program.unwrapped(callee) {
                if path == "jax.jit()" || path == "jax.pmap()" || path.ends_with("_jit()") {
                    guesses.push((Operation::Jitted, 100));
                }
                guesses.extend(of_callee(program, &inner, call, scope, depth + 1));
            }
            guesses
        }
        Value::Function(function) => of_function(program, function, call),
        Value::Unknown => of_name(call),
        _ => Vec::new(),
    }
}

/// A function of the user's is an operation of its own when a decorator made it one.
fn of_function<'a>(program: &Program<'a>, function: &FunctionRef<'a>, call: &ExprCall) -> Vec<Guess> {
    let launched = call.func.is_subscript_expr();
    match device_function(program, function) {
        Some(Device::Kernel(launcher)) if launched || launcher != Launcher::Triton => {
            vec![(Operation::CustomKernel(launcher), 100)]
        }
        Some(Device::Jitted) => vec![(Operation::Jitted, 100)],
        Some(Device::Compiled) => vec![(Operation::Compiled, 100)],
        _ => Vec::new(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Its body is device code.
    Kernel(Launcher),
    Jitted,
    Compiled,
}

/// What a function's decorators make of it.
pub fn device_function<'a>(program: &Program<'a>, function: &FunctionRef<'a>) -> Option<Device> {
    program.decorators(function).iter().find_map(|name| {
        let name = name.trim_end_matches("()");
        match name {
            "triton.jit" | "triton.autotune" | "triton.heuristics" | "triton.runtime.jit" | "tilelang.jit" => {
                Some(Device::Kernel(Launcher::Triton))
            }
            "numba.cuda.jit" | "warp.kernel" => Some(Device::Kernel(Launcher::Numba)),
            "cupyx.jit.rawkernel" | "cupy.fuse" => Some(Device::Kernel(Launcher::CuPy)),
            "jax.jit" | "jax.pmap" | "equinox.filter_jit" | "flax.nnx.jit" | "equinox.filter_pmap" => {
                Some(Device::Jitted)
            }
            "torch.compile" | "torch.jit.script" => Some(Device::Compiled),
            _ => None,
        }
    })
}

fn of_path(path: &str, call: &ExprCall) -> Vec<Guess> {
    use Operation::*;
    let last = path.rsplit('.').next().unwrap_or(path);
    if let Some(module) = path.strip_prefix("torch.nn.").and_then(|rest| rest.strip_suffix("()"))
        && !module.contains('.')
    {
        return torch_module(module).into_iter().collect();
    }
    match path {
        "torch.nn.Embedding.from_pretrained()" => return vec![(Embedding, 100)],
        "torch.nn.EmbeddingBag.from_pretrained()" => return vec![(EmbeddingBag, 100)],
        "torch.compile()" | "torch.jit.script()" | "torch.jit.trace()" | "torch.jit.load()" => {
            return vec![(Compiled, 80)];
        }
        "warp.launch" => return vec![(CustomKernel(Launcher::Numba), 100)],
        _ => {}
    }
    let custom = |launcher, sure| vec![(CustomKernel(launcher), sure)];
    if ["cupy.RawKernel()", "cupy.ElementwiseKernel()", "cupy.ReductionKernel()"].contains(&path)
        || path.starts_with("cupy.RawModule()")
        || path.starts_with("cupy.cuda.compile_with_cache()")
    {
        return custom(Launcher::CuPy, 100);
    }
    if path.starts_with("pycuda.") || path.starts_with("cuda.") {
        let launches = path.ends_with("get_function()") || last.starts_with("cuLaunchKernel") || last == "launch";
        return if launches { custom(Launcher::Extension, 100) } else { Vec::new() };
    }
    if path.starts_with("numba.cuda.jit()") {
        return custom(Launcher::Numba, 100);
    }
    if path.starts_with("jax.numpy.") || path.starts_with("jax.lax.") || path.starts_with("jax.random.") {
        return vec![(Device, 100)];
    }
    match origin(path) {
        Origin::Builtin | Origin::Standard | Origin::Host => Vec::new(),
        Origin::Framework if path.starts_with("numpy") || path.starts_with("scipy") => Vec::new(),
        Origin::Framework => {
            let mut guesses: Vec<Guess> = torch_operation(last).into_iter().collect();
            if path.starts_with("torch.distributions.") && matches!(last, "sample" | "rsample") {
                guesses = vec![if path.contains("Bernoulli") { (Bernoulli, 100) } else { (Multinomial, 100) }];
            }
            guesses
        }
        _ if of_a_result(path) => torch_operation(last).into_iter().collect(),
        Origin::Kernels => {
            let mut guesses: Vec<Guess> = Vec::new();
            if path.starts_with("torch_scatter") || path.starts_with("torch_sparse") {
                guesses.push((GatherScatter, 100));
            }
            if !is_class_name(last) {
                guesses.push((CustomKernel(Launcher::Extension), 85));
            }
            guesses
        }
        Origin::Models => library_model(path, last, call),
        Origin::Unknown => foreign(path, last),
    }
}

/// The call of a module of torch.nn.
fn torch_module(module: &str) -> Option<Guess> {
    use Operation::*;
    Some(match module {
        "Embedding" => (Embedding, 100),
        "EmbeddingBag" => (EmbeddingBag, 100),
        "CrossEntropyLoss" | "NLLLoss" | "NLLLoss2d" | "AdaptiveLogSoftmaxWithLoss" => (LabelLoss, 100),
        "MultiMarginLoss" | "MultiLabelMarginLoss" => (MarginLoss, 100),
        "BCELoss" => (BinaryLoss, 100),
        "FractionalMaxPool2d" | "FractionalMaxPool3d" => (Selection, 100),
        "MaxUnpool2d" | "MaxUnpool1d" | "MaxUnpool3d" => (GatherScatter, 60),
        _ => return None,
    })
}

/// A function of torch or torch.nn.functional, or a method of a tensor, by its name.
fn torch_operation(name: &str) -> Option<Guess> {
    use Operation::*;
    let base = name.strip_suffix('_').unwrap_or(name);
    Some(match base {
        "embedding" => (Embedding, 100),
        "embedding_bag" => (EmbeddingBag, 100),
        "index_select" => (IndexSelect, 100),
        "index_put" => (IndexWrite, 100),
        "gather" | "scatter" | "scatter_add" | "scatter_reduce" | "one_hot" | "take_along_dim" => (GatherScatter, 100),
        "index_add" | "index_copy" | "index_fill" | "index_reduce" => (IndexAdd, 100),
        "take" | "put" => (Take, 100),
        "cross_entropy" | "nll_loss" | "nll_loss2d" => (LabelLoss, 100),
        "multi_margin_loss" | "multilabel_margin_loss" => (MarginLoss, 100),
        "binary_cross_entropy" => (BinaryLoss, 100),
        "multinomial" => (Multinomial, 100),
        "bernoulli" => (Bernoulli, 100),
        "masked_scatter" => (MaskedScatter, 100),
        "repeat_interleave" => (RepeatInterleave, 100),
        "_assert_async" => (AsyncAssert, 100),
        "topk" | "kthvalue" | "fractional_max_pool2d" | "fractional_max_pool3d" => (Selection, 100),
        _ => return None,
    })
}

/// Something of a library of models: calling an object of it runs a model.
fn library_model(path: &str, last: &str, call: &ExprCall) -> Vec<Guess> {
    use Operation::*;
    if path.starts_with("torch_geometric") {
        let runs = path.ends_with(')') || !is_class_name(last);
        return if runs { vec![(GatherScatter, 85), (IndexSelect, 85)] } else { Vec::new() };
    }
    if last == "generate" {
        return vec![(Multinomial, 60), (LibraryModel, 100)];
    }
    let called = path.ends_with(')') && !path.contains("Tokenizer") && !path.contains("Processor");
    let trains = matches!(last, "fit" | "train" | "training_step" | "forward");
    if !called && !trains {
        return Vec::new();
    }
    let mut guesses = vec![(LibraryModel, 100)];
    if tree::keyword(call, "labels").is_some() {
        guesses.push((LabelLoss, 70));
    }
    guesses
}

/// A function of a module whose source is not at hand: perhaps a compiled extension.
fn foreign(path: &str, last: &str) -> Vec<Guess> {
    use Operation::*;
    if path.ends_with("[]") {
        return vec![(CustomKernel(Launcher::Triton), 90)];
    }
    if let Some(operator) = path.strip_prefix("torch.ops.") {
        return match operator.split('.').next() {
            Some("aten" | "prims" | "prim") => {
                torch_operation(operator.split('.').nth(1).unwrap_or("")).into_iter().collect()
            }
            _ => vec![(CustomKernel(Launcher::Extension), 100)],
        };
    }
    if path.starts_with("torch.utils.cpp_extension.load") {
        let inside = path.contains("().");
        return if inside { vec![(CustomKernel(Launcher::Extension), 100)] } else { Vec::new() };
    }
    if path.starts_with("torch.utils.cpp_extension") || path.starts_with("torch.classes") {
        return Vec::new();
    }
    if path.starts_with("ctypes") {
        let library = path.starts_with("ctypes.CDLL().") || path.starts_with("ctypes.cdll.LoadLibrary().");
        return if library { vec![(CustomKernel(Launcher::Extension), 90)] } else { Vec::new() };
    }
    let mut guesses: Vec<Guess> = guesses_by_name(last.trim_end_matches("()"));
    if is_class_name(last) {
        // Calling a class makes an object; calling the object runs somebody's model.
        if path.ends_with(')') {
            guesses.push((LibraryModel, 90));
            guesses.push((CustomKernel(Launcher::Extension), 45));
        }
        return guesses;
    }
    let root = path.split(['.', '(']).next().unwrap_or(path).to_ascii_lowercase();
    let name = last.to_ascii_lowercase();
    let sure = if HOUSEHOLD.iter().any(|word| name.starts_with(word)) {
        20
    } else if DEVICE_WORDS.iter().any(|word| root.contains(word) || name.contains(word)) {
        95
    } else {
        75
    };
    guesses.push((CustomKernel(Launcher::Extension), sure));
    guesses
}

/// Is this a method of what a function gave, which is a tensor for all that is known: `flash_attn_func().sum`?
fn of_a_result(path: &str) -> bool {
    let Some((made, _)) = path.rsplit_once("().").or_else(|| path.rsplit_once("()[].")) else { return false };
    let maker = made.rsplit('.').next().unwrap_or(made);
    let loads = maker == "load" || maker == "load_inline" || maker == "CDLL" || maker == "LoadLibrary";
    !is_class_name(maker) && !loads && maker != "from_pretrained"
}

/// What a name that could not be followed suggests.
fn of_name(call: &ExprCall) -> Vec<Guess> {
    if call.func.is_subscript_expr() {
        // `kernel[grid](..)` of an unknown kernel; a call of a container's element is written the same way.
        let grid = matches!(call.func.as_ref(), Expr::Subscript(subscript) if subscript.slice.is_tuple_expr());
        return if grid { vec![(Operation::CustomKernel(Launcher::Triton), 90)] } else { Vec::new() };
    }
    let Some(name) = tree::last_name(&call.func) else { return Vec::new() };
    if call.func.is_attribute_expr()
        && let Some((operation, _)) = torch_operation(name)
        && !call.arguments.args.is_empty()
    {
        return vec![(operation, 95)];
    }
    let mut guesses = guesses_by_name(name);
    if tree::keyword(call, "labels").is_some() {
        guesses.push((Operation::LabelLoss, 60));
    }
    guesses
}

fn guesses_by_name(name: &str) -> Vec<Guess> {
    use Operation::*;
    let name = name.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["cross_entropy", "crossentropy", "nll"]) && !has(&["binary"]) {
        return vec![(LabelLoss, 85)];
    }
    if has(&["bce", "binary_cross"]) && !has(&["logit"]) {
        return vec![(BinaryLoss, 85)];
    }
    if has(&["criterion", "loss_fn", "loss_func", "lossfn", "compute_loss", "get_loss", "objective", "loss"])
        && !has(&["log_loss", "print", "scale", "reduce", "update", "record", "plot", "append"])
    {
        return vec![(LabelLoss, 65), (BinaryLoss, 55), (MarginLoss, 50)];
    }
    if (has(&["emb"]) && !has(&["dim", "size"])) || matches!(name.as_str(), "wte" | "wpe" | "lookup" | "embed") {
        return vec![(Embedding, 75)];
    }
    if has(&["multinomial"]) || matches!(name.as_str(), "sample" | "sample_token" | "sample_next") {
        return vec![(Multinomial, 60)];
    }
    if name == "generate" {
        return vec![(LibraryModel, 90), (Multinomial, 55)];
    }
    if has(&["scatter", "gather", "one_hot", "onehot"]) {
        return vec![(GatherScatter, 75)];
    }
    if MODEL_WORDS.iter().any(|word| name == *word) || name.ends_with("_model") || name.ends_with("_net") {
        return vec![(LibraryModel, 80)];
    }
    Vec::new()
}

const MODEL_WORDS: &[&str] = &[
    "model",
    "net",
    "network",
    "encoder",
    "decoder",
    "backbone",
    "bert",
    "gpt",
    "llm",
    "policy",
    "actor",
    "critic",
    "transformer",
    "unet",
    "teacher",
    "student",
    "generator",
    "discriminator",
    "module",
    "text_encoder",
    "language_model",
];

/// What helpers of one's own are called, rather than kernels.
const HOUSEHOLD: &[&str] = &[
    "load", "save", "log", "parse", "get_", "set_", "print", "seed", "read", "write", "build", "make", "create",
    "config", "plot", "download", "setup", "init", "accuracy", "evaluate", "average", "update", "show", "count",
    "format", "prepare", "register", "add_arg", "tokenize", "is_", "has_", "num_", "str_",
];

const DEVICE_WORDS: &[&str] =
    &["ext", "cuda", "_c", "kernel", "native", "gpu", "cpp", "fused", "raster", "voxel", "knn", "op", "launch"];

fn is_class_name(name: &str) -> bool {
    let name = name.trim_end_matches("()").trim_start_matches('_');
    name.chars().next().is_some_and(char::is_uppercase)
}

/// What `value[index]` may be, read or written.
pub fn subscript<'a>(
    program: &Program<'a>,
    subscript: &'a ExprSubscript,
    written: bool,
    scope: &Scope<'a>,
) -> Option<Guess> {
    let index = index_kind(program, &subscript.slice, scope, 0);
    if index == Index::Host || !may_be_tensor(program, &subscript.value, scope) {
        return None;
    }
    let operation = if written { Operation::IndexWrite } else { Operation::IndexRead };
    let sure = match index {
        Index::Host => return None,
        Index::Tensor => 100,
        Index::Mask => 20,
        Index::Literal => 40,
        Index::Unknown => {
            let base = tree::last_name(&subscript.value).unwrap_or("").to_ascii_lowercase();
            let index = tree::last_name(&subscript.slice).unwrap_or("").to_ascii_lowercase();
            if MAPPING_WORDS.iter().any(|word| base == *word || base.ends_with(&format!("_{word}"))) {
                30
            } else if KEY_WORDS.contains(&index.as_str()) {
                35
            } else if index.contains("mask") {
                25
            } else if INDEX_WORDS.iter().any(|word| index.contains(word)) {
                90
            } else {
                75
            }
        }
    };
    Some((operation, sure))
}

/// Names of what is rather a dictionary or a list of Python's.
const MAPPING_WORDS: &[&str] = &[
    "cfg",
    "config",
    "args",
    "batch",
    "kwargs",
    "dict",
    "map",
    "cache",
    "registry",
    "vocab",
    "losses",
    "metrics",
    "history",
    "results",
    "meta",
    "params",
    "options",
    "state",
    "files",
    "paths",
    "names",
    "dataset",
    "loaders",
    "optimizers",
    "keys",
    "lookup",
    "stats",
    "meters",
    "shape",
    "sizes",
    "dims",
    "lines",
    "words",
    "argv",
];

const KEY_WORDS: &[&str] = &["key", "k", "name", "split", "phase", "mode", "field", "task", "epoch", "step", "rank"];

const INDEX_WORDS: &[&str] = &[
    "idx", "ind", "index", "pos", "ids", "label", "perm", "order", "sel", "neigh", "row", "col", "src", "dst", "tok",
    "target", "assign", "keep", "batch", "parent", "edge", "action", "choice", "lookup", "slot",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Index {
    /// A number, a slice, a string: checked on the host.
    Host,
    /// A boolean mask: its length is checked on the host, and it selects nothing that is not there.
    Mask,
    /// A list of numbers that is written out.
    Literal,
    Unknown,
    Tensor,
}

fn index_kind<'a>(program: &Program<'a>, index: &'a Expr, scope: &Scope<'a>, depth: u32) -> Index {
    if depth > 8 || !program.step() {
        return Index::Unknown;
    }
    let inner = |expr: &'a Expr| index_kind(program, expr, scope, depth + 1);
    match index {
        Expr::Tuple(tuple) => tuple.elts.iter().map(inner).max().unwrap_or(Index::Host),
        Expr::List(list) => match list.elts.iter().map(inner).max() {
            None | Some(Index::Host) => Index::Literal,
            Some(kind) => kind,
        },
        Expr::Compare(_) | Expr::BoolOp(_) => Index::Mask,
        Expr::UnaryOp(unary) => match unary.op {
            UnaryOp::Invert | UnaryOp::Not => Index::Mask,
            _ => inner(&unary.operand),
        },
        Expr::BinOp(binary) => {
            use ruff_python_ast::Operator::{BitAnd, BitOr, BitXor};
            let (left, right) = (inner(&binary.left), inner(&binary.right));
            if matches!(binary.op, BitAnd | BitOr | BitXor) && (left == Index::Mask || right == Index::Mask) {
                return Index::Mask;
            }
            left.max(right)
        }
        Expr::If(choice) => inner(&choice.body).max(inner(&choice.orelse)),
        Expr::Subscript(subscript) => {
            if tree::last_name(&subscript.value) == Some("shape") {
                return Index::Host;
            }
            match inner(&subscript.value) {
                // An item of a container of Python's may be anything.
                Index::Host | Index::Literal => Index::Unknown,
                kind => kind,
            }
        }
        Expr::Starred(starred) => inner(&starred.value),
        Expr::Name(name) => {
            let bindings = scope.table().all(name.id.as_str());
            if let [binding] = bindings {
                match &binding.what {
                    Bound::Value(value) if !std::ptr::eq(*value, index) => return inner(value),
                    Bound::Element(iterated, place) => return element_kind(program, iterated, *place, scope, depth),
                    _ => {}
                }
            }
            kind_of_value(&program.value(index, scope))
        }
        Expr::Call(call) => {
            let method = match call.func.as_ref() {
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => "",
            };
            match method {
                "item" | "tolist" | "size" | "dim" | "numel" | "index" | "get" | "keys" | "numpy" => {
                    return Index::Host;
                }
                "bool" | "eq" | "ne" | "gt" | "lt" | "ge" | "le" | "isnan" | "logical_not" => return Index::Mask,
                "long" | "argmax" | "argmin" | "argsort" | "nonzero" | "squeeze" | "unsqueeze" | "view" | "flatten"
                | "reshape" | "clamp" | "repeat" | "expand" | "to" | "cuda" | "int" | "permute" | "t" => {
                    return Index::Tensor;
                }
                _ => {}
            }
            kind_of_value(&program.value(index, scope))
        }
        Expr::Attribute(_) => kind_of_value(&program.value(index, scope)),
        _ => kind_of_value(&program.value(index, scope)),
    }
}

/// The kind of a loop's variable.
fn element_kind<'a>(
    program: &Program<'a>,
    iterated: &'a Expr,
    place: Option<usize>,
    scope: &Scope<'a>,
    depth: u32,
) -> Index {
    if let Expr::Call(call) = iterated {
        match (tree::last_name(&call.func).unwrap_or(""), place) {
            ("range" | "trange" | "count", _) | ("enumerate", Some(0)) | ("items", Some(0)) | ("keys", _) => {
                return Index::Host;
            }
            ("tqdm" | "reversed" | "sorted", _) => {
                let first = call.arguments.args.first();
                return first.map_or(Index::Unknown, |first| element_kind(program, first, place, scope, depth + 1));
            }
            _ => {}
        }
    }
    if let Expr::List(list) = iterated
        && place.is_none()
    {
        let kinds = list.elts.iter().map(|item| index_kind(program, item, scope, depth + 1));
        return kinds.max().unwrap_or(Index::Unknown);
    }
    Index::Unknown
}

fn kind_of_value(value: &Value<'_>) -> Index {
    match value {
        Value::Host | Value::Class(_) | Value::Function(_) | Value::Module(_) | Value::Lambda(..) => Index::Host,
        Value::Path { path, .. } => match path.as_str() {
            "torch.nonzero()" | "torch.where()" => Index::Tensor,
            "torch.isnan()" | "torch.isfinite()" | "torch.isinf()" | "torch.eq()" | "torch.ne()" => Index::Mask,
            _ if path.ends_with(".shape[]") || path.ends_with(".shape") || path.ends_with(".size()") => Index::Host,
            _ if path.starts_with("torch.") && path.contains("()") => Index::Tensor,
            _ if path.starts_with("torch.") => Index::Host,
            _ if path.starts_with("builtins.") && !path.contains("()") => Index::Unknown,
            _ => match origin(path) {
                Origin::Builtin | Origin::Standard => Index::Host,
                _ if path.starts_with("numpy") => Index::Literal,
                _ => Index::Unknown,
            },
        },
        Value::Any(values) => values.iter().map(kind_of_value).max().unwrap_or(Index::Unknown),
        _ => Index::Unknown,
    }
}

fn may_be_tensor<'a>(program: &Program<'a>, base: &'a Expr, scope: &Scope<'a>) -> bool {
    if matches!(tree::last_name(base), Some("shape" | "size" | "environ" | "argv" | "__dict__" | "state_dict")) {
        return false;
    }
    fn possible(value: &Value<'_>) -> bool {
        match value {
            Value::Unknown => true,
            Value::Path { path, .. } => match origin(path) {
                Origin::Builtin => !path.contains('('),
                Origin::Standard | Origin::Host => false,
                Origin::Framework => {
                    // `torch.nn.ModuleList()` and its like hold modules; a plain `torch.Tensor[..]` is a type.
                    let library_itself = !path.contains("()");
                    let container = path.contains(".nn.Module") || path.contains(".nn.Sequential");
                    let made = !path.starts_with("numpy") && !library_itself && !container;
                    made || path.ends_with("[]")
                }
                _ => true,
            },
            Value::Any(values) => values.iter().any(possible),
            _ => false,
        }
    }
    possible(&program.value(base, scope))
}

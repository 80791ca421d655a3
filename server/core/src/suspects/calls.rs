//! Which operation a call may be: by what it calls, and where that cannot be followed, by its name.

use ruff_python_ast::{Expr, ExprCall};

use crate::python::libraries::{Origin, origin};
use crate::python::value::{FunctionRef, Scope, Value};
use crate::python::{Program, tree};

use super::fit::Guess;
use super::kernels::{Launcher, Operation};

/// What a call may be. Functions whose source is at hand are not guessed at here: the walk enters them.
pub fn call<'a>(program: &Program<'a>, call: &'a ExprCall, scope: &Scope<'a>) -> Vec<Guess> {
    let callee = program.value(&call.func, scope);
    of_callee(program, &callee, call, 0)
}

fn of_callee<'a>(program: &Program<'a>, callee: &Value<'a>, call: &'a ExprCall, depth: u32) -> Vec<Guess> {
    if depth > 4 {
        return Vec::new();
    }
    match callee {
        Value::Any(values) => values.iter().flat_map(|value| of_callee(program, value, call, depth + 1)).collect(),
        Value::Path { path, call: made } => {
            if path == "torch.nn.Sequential()"
                && let Some((made, scope)) = made
            {
                let members = made.arguments.args.iter().map(|member| program.value(member, scope));
                return members.flat_map(|member| of_callee(program, &member, call, depth + 1)).collect();
            }
            let mut guesses = of_path(path, call);
            if let Some(inner) = program.unwrapped(callee) {
                if path == "jax.jit()" || path == "jax.pmap()" || path.ends_with("_jit()") {
                    guesses.push((Operation::Jitted, 100));
                }
                guesses.extend(of_callee(program, &inner, call, depth + 1));
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
        Origin::Kernels | Origin::Unknown if of_a_result(path) => torch_operation(last).into_iter().collect(),
        Origin::Kernels => {
            let mut guesses: Vec<Guess> = Vec::new();
            if path.starts_with("torch_scatter") || path.starts_with("torch_sparse") {
                guesses.push((GatherScatter, 100));
            }
            let makes_an_object = is_class_name(last) && !path.ends_with(')');
            if !makes_an_object {
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
    let trains =
        matches!(last, "fit" | "train" | "training_step" | "forward" | "fine_tune" | "fit_one_cycle" | "learn");
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

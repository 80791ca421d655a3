//! Library names that the reading of Python relies on.

/// Calls that hand back what they were given, seen by this module: methods of a model that return the model.
pub const SAME_MODEL: &[&str] = &[
    "cuda",
    "to",
    "cpu",
    "eval",
    "train",
    "half",
    "float",
    "double",
    "bfloat16",
    "requires_grad_",
    "apply",
    "share_memory",
    "to_empty",
    "compile",
    "xpu",
    "type",
];

/// Library calls whose result stands for their first argument.
pub const WRAPPERS: &[&str] = &[
    "torch.compile",
    "torch.jit.script",
    "torch.jit.trace",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.cuda.make_graphed_callables",
    "torch.no_grad()",
    "torch.inference_mode()",
    "torch.vmap",
    "torch.func.vmap",
    "torch.func.grad",
    "torch.optim.swa_utils.AveragedModel",
    "torch.nn.utils.parametrizations.weight_norm",
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm",
    "torch.nn.utils.parametrizations.spectral_norm",
    "functools.partial",
    "functools.cache",
    "functools.lru_cache",
    "copy.deepcopy",
    "copy.copy",
    "jax.jit",
    "jax.pmap",
    "jax.vmap",
    "jax.grad",
    "jax.value_and_grad",
    "jax.checkpoint",
    "equinox.filter_jit",
    "flax.nnx.jit",
    "numba.cuda.jit",
    "triton.jit",
];

/// Annotations that say: not a tensor.
pub const HOST_TYPES: &[&str] = &[
    "builtins.int",
    "builtins.str",
    "builtins.float",
    "builtins.bool",
    "builtins.dict",
    "builtins.list",
    "builtins.bytes",
    "typing.Dict",
    "typing.List",
    "typing.Sequence",
    "pathlib.Path",
    "builtins.tuple",
];

/// Calls that give something of Python's, not a tensor.
pub const HOST_CALLS: &[&str] = &[
    "builtins.len",
    "builtins.int",
    "builtins.str",
    "builtins.float",
    "builtins.bool",
    "builtins.range",
    "builtins.dict",
    "builtins.list",
    "builtins.set",
    "builtins.tuple",
    "builtins.max",
    "builtins.min",
    "builtins.sum",
    "builtins.round",
    "builtins.sorted",
    "builtins.open",
    "builtins.input",
    "builtins.repr",
    "collections.defaultdict",
    "collections.OrderedDict",
    "collections.Counter",
    "collections.deque",
    "os.getenv",
    "random.randint",
    "random.choice",
    "random.randrange",
    "random.random",
    "json.load",
    "json.loads",
    "time.time",
    "argparse.ArgumentParser().parse_args",
];

pub fn is_module_container(path: &str) -> bool {
    matches!(
        path,
        "torch.nn.ModuleList()"
            | "torch.nn.ModuleDict()"
            | "torch.nn.Sequential()"
            | "torch.nn.ParameterList()"
            | "collections.OrderedDict()"
    )
}
/// One name for what has several: `torch.nn.modules.sparse.Embedding` is `torch.nn.Embedding`.
pub fn canonical(path: &str) -> String {
    for (from, to) in ALIASES {
        if let Some(rest) = path.strip_prefix(from) {
            return format!("{to}{rest}");
        }
    }
    if let Some(rest) = path.strip_prefix("torch.nn.modules.")
        && let Some((_, name)) = rest.split_once('.')
    {
        return format!("torch.nn.{name}");
    }
    path.to_owned()
}

const ALIASES: &[(&str, &str)] = &[
    ("torch.cuda.graphs.", "torch.cuda."),
    ("torch.distributions.categorical.", "torch.distributions."),
    ("torch.distributions.bernoulli.", "torch.distributions."),
    ("torch.distributions.multinomial.", "torch.distributions."),
    ("tqdm.auto.", "tqdm."),
    ("cupy.core.", "cupy."),
    ("jax._src.", "jax."),
];

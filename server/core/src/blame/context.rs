//! What the frames of a failure tell of the moment: backward pass, replay of a graph, a call that only waits.

use std::sync::LazyLock;

use regex::Regex;

use super::asserts::Asserts;
use super::failure::Failure;
use super::user_code::Spot;
use crate::pattern::pattern;
use crate::source::Sources;
use crate::verdict::Phase;

/// Frames below the reported one, which are libraries' then.
fn below<'a>(failure: &'a Failure, sources: &Sources) -> &'a [Spot] {
    let spots = failure.spots(sources);
    let deepest = spots.iter().rposition(|spot| spot.is_user(sources));
    &spots[deepest.map_or(0, |at| at + 1)..]
}

/// Does the trace end in autograd's engine, so that the user's deepest line only started the backward pass?
pub fn ends_in_backward(failure: &Failure, sources: &Sources) -> bool {
    let below = below(failure, sources);
    let calls_it = |spot: &Spot| is(&BACKWARD_CALL, spot.source.as_deref());
    below.iter().any(is_engine) || (below.is_empty() && failure.reported(sources).is_some_and(calls_it))
}

/// Did the engine itself raise it, while it ran an operation for which there is no frame? Before it runs one, it complains
/// of how it was called, and that is the fault of the line that called it.
pub fn is_of_engine(failure: &Failure, sources: &Sources) -> bool {
    let runs = below(failure, sources).last().is_some_and(|spot| {
        is_engine(spot)
            && spot.source.as_deref().is_some_and(|source| source.contains("_execution_engine.run_backward("))
    });
    let headline = failure.headline();
    runs && !OF_THE_CALL.iter().any(|words| headline.contains(words))
}

/// What is said of the tensors that `backward()` was given, or of a graph that is gone, and not of an operation in it.
const OF_THE_CALL: [&str; 4] = [
    "does not require grad and does not have a grad_fn",
    "Trying to backward through the graph a second time",
    "appears to not have been used in the graph",
    "got no graph",
];

/// A frame of the functions that start autograd's engine.
fn is_engine(spot: &Spot) -> bool {
    let file = spot.file.replace('\\', "/");
    let starts = matches!(
        spot.function.as_deref().map(|name| name.rsplit('.').next().unwrap_or(name)),
        Some("backward" | "_engine_run_backward" | "grad" | "run_backward")
    );
    starts && ["torch/autograd/", "torch/_tensor.py", "torch/tensor.py"].iter().any(|part| file.contains(part))
}

/// Is the reported line the replay of a CUDA graph?
pub fn is_replay(failure: &Failure, sources: &Sources) -> bool {
    below(failure, sources).iter().any(|spot| {
        let in_graphs = spot.file.replace('\\', "/").ends_with("torch/cuda/graphs.py");
        in_graphs && spot.function.as_deref().is_some_and(|name| name.ends_with("replay"))
    }) || failure.reported(sources).is_some_and(|spot| is(&REPLAY_CALL, spot.source.as_deref()))
        || below(failure, sources).iter().any(|spot| spot.file.contains("cudagraph_trees.py"))
}

/// Does the reported line only wait for the GPU or read from it, with no launch of its own?
pub fn is_observer(spot: &Spot) -> bool {
    is(&OBSERVER, spot.source.as_deref())
}

/// JAX dispatches on its own threads, whatever CUDA_LAUNCH_BLOCKING says.
pub fn is_jax(failure: &Failure) -> bool {
    failure.links.iter().any(|link| {
        ["XlaRuntimeError", "JaxRuntimeError"].iter().any(|name| link.type_name.ends_with(name))
            || link.spots.iter().any(|spot| spot.file.replace('\\', "/").contains("/site-packages/jax/"))
    })
}

pub fn phase(failure: &Failure, asserts: &Asserts, sources: &Sources) -> Option<Phase> {
    let spots = failure.spots(sources);
    let has = |part: &str| spots.iter().any(|spot| spot.file.replace('\\', "/").contains(part));
    let in_engine = spots.iter().any(is_engine);
    let kernel = asserts.lines.first().and_then(|line| line.kernel.as_deref()).unwrap_or("");
    let in_function = |name: &str| {
        spots.iter().any(|spot| spot.function.as_deref().is_some_and(|it| it.rsplit('.').next() == Some(name)))
    };
    if failure.kind.id == "stream-capture" {
        Some(Phase::Capture)
    } else if is_replay(failure, sources) {
        Some(Phase::Replay)
    } else if kernel.contains("_backward") || kernel.contains("updateGradInput") {
        Some(Phase::Backward)
    } else if kernel.contains("forward") || kernel.contains("updateOutput") {
        // A trace that ends in backward() does not move a forward kernel there.
        Some(Phase::Forward)
    } else if in_engine || ends_in_backward(failure, sources) {
        Some(Phase::Backward)
    } else if has("torch/optim/") || has("grad_scaler.py") {
        Some(Phase::Optimizer)
    } else if has("torch/serialization.py") || failure.kind.id == "deserialize-cuda" {
        Some(Phase::Load)
    } else if failure.kind.id == "library-missing" && failure.headline().contains("ImportError") {
        Some(Phase::Import)
    } else if in_function("forward") || in_function("_call_impl") {
        Some(Phase::Forward)
    } else {
        None
    }
}

fn is(call: &Regex, source: Option<&str>) -> bool {
    source.is_some_and(|source| call.is_match(source))
}

static BACKWARD_CALL: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.backward\(|autograd\.grad\("));
static REPLAY_CALL: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.replay\(\)"));

/// `x.item()`, `print(x.cpu())`, `torch.cuda.synchronize()`: names and subscripts only, so nothing else is launched.
static OBSERVER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"synchronize\(|empty_cache\(|manual_seed(_all)?\(|\bbarrier\(|pin_memory\(|block_until_ready\(",
        r"|^(?:[\w., ]+ ?(?:[-+*/]?=) ?)?(?:print|float|int|bool|str|repr|len)?\(?(?:[^()]*, ?)?[\w.]+(?:\[[\w, :]+\])?\.(?:item|cpu|numpy|tolist|detach\(\)\.cpu|cpu\(\)\.numpy)\(\)\)*(?: ?[-+*/] ?[\w.]+)?:?(?: *#.*)?$",
        r"|^print\([\w., ]+\)$|^num_batches_tracked|num_batches_tracked \+= 1",
    ))
});

//! The guard's exceptions: what an argument holds that a kernel would have asserted on, found before the kernel ran.

use super::Case;
use super::context::ends_in_backward;
use super::failure::{Failure, Link};
use super::place::Judgement;
use super::user_code::Spot;
use crate::Sources;
use crate::parse::Relation;
use crate::verdict::{Certainty, Verdict, is_exception_of_guard};

/// What an exception of the guard names before its colon, such as `nll_loss target label`; None for any other exception.
pub fn argument(verdict: &Verdict) -> Option<&str> {
    verdict.exception.as_ref().filter(|_| verdict.is_of_guard())?.message.split(':').next()
}

pub(super) fn is_of_guard(failure: &Failure) -> bool {
    failure.link().is_some_and(|link| is_exception_of_guard(&link.type_name))
}

/// `embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)`
pub(super) fn sentence(failure: &Failure) -> Option<&str> {
    failure.link().filter(|link| is_exception_of_guard(&link.type_name)).and_then(|link| link.message.lines().next())
}

/// The guard checks each call by itself, so the call is proved; told later, the call's own stack is in the message.
pub(super) fn judge(case: &Case, sources: &Sources, judgement: &mut Judgement) {
    let root = &case.root;
    judgement.because.push(("guard", vec![]));
    judgement.certainty = Certainty::Exact;
    judgement.trusted = true;
    if let Some(call) = call(root) {
        judgement.because.push(("guard-deferred", vec![]));
        judgement.trusted = false;
        judgement.place = call.spots.iter().rev().find(|spot| spot.is_user(sources)).map(|spot| spot.place(sources));
        judgement.frames = Some(call.spots.iter().map(|spot| spot.frame(sources)).collect());
    } else if ends_in_backward(root, sources) {
        judgement.because.push(("backward", vec![]));
        judgement.certainty = Certainty::Likely;
        judgement.trusted = false;
        let forward = case.forward.iter().rev().find(|spot: &&Spot| spot.is_user(sources));
        match forward {
            Some(spot) => {
                judgement.because.push(("forward-trace", vec![("function", case.forward_function.clone())]));
                judgement.place = Some(spot.place(sources));
                judgement.certainty = Certainty::Exact;
            }
            None => judgement.missing.push(("missing-forward-trace", vec![])),
        }
    }
}

/// The call of an offender that was found out later.
fn call(root: &Failure) -> Option<&Link> {
    let before = root.links.get(root.root.checked_sub(1)?)?;
    (before.relation == Some(Relation::Carried)).then_some(before)
}

#[cfg(test)]
mod tests {
    use crate::blame::blame;
    use crate::catalog::{Language, Texts};
    use crate::log::Log;
    use crate::verdict::Phase;
    use crate::{Certainty, Evidence, Sources, Verdict};

    const SENTENCE: &str = "embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)";

    fn verdict(text: &str) -> Verdict {
        let evidence = Evidence { log: Some(Log::from_text(text)), ..Evidence::default() };
        blame(&evidence, &Sources::default(), Texts::get(Language::English)).into_iter().next().unwrap()
    }

    #[test]
    fn at_the_line_it_is_a_proof() {
        let verdict = verdict(&format!(
            r#"Traceback (most recent call last):
  File "/home/dev/proj/train.py", line 12, in <module>
    out = forward(tokens)
  File "/home/dev/proj/train.py", line 10, in forward
    y = emb(x)
  File "/home/dev/venv/lib/python3.12/site-packages/torch/nn/functional.py", line 2567, in embedding
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)
  File "<cublame>", line 174, in kernel
cublame.GuardIndexError: {SENTENCE}
"#
        ));
        assert_eq!((verdict.kind.as_str(), verdict.summary.as_str()), ("device-assert", SENTENCE));
        assert_eq!((verdict.place.unwrap().line, verdict.certainty), (10, Certainty::Exact));
        assert!(verdict.trace_trusted && verdict.error.is_none(), "{:?}", verdict.error);
    }

    #[test]
    fn told_later_the_place_is_the_call_in_the_message() {
        let verdict = verdict(&format!(
            r#"Traceback (most recent call last):
  File "/home/dev/proj/train.py", line 13, in <module>
    print(out.item())
  File "<cublame>", line 43, in tell
cublame.GuardIndexError: {SENTENCE}
Original Traceback (most recent call last):
  File "/home/dev/proj/train.py", line 12, in <module>
    out = forward(tokens)
  File "/home/dev/proj/train.py", line 10, in forward
    y = emb(x)
  File "/home/dev/venv/lib/python3.12/site-packages/torch/nn/functional.py", line 2567, in embedding
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)

That call was checked without waiting for the GPU, and a later line told of it (CUBLAME_GUARD=deferred).
"#
        ));
        assert_eq!((verdict.kind.as_str(), verdict.summary.as_str()), ("device-assert", SENTENCE));
        assert_eq!((verdict.place.unwrap().line, verdict.certainty), (10, Certainty::Exact));
        assert_eq!(verdict.reported.unwrap().line, 13);
        assert!(!verdict.trace_trusted);
    }

    #[test]
    fn in_the_backward_pass_the_line_only_started_it() {
        let verdict = verdict(
            r#"Traceback (most recent call last):
  File "/home/dev/proj/train.py", line 20, in <module>
    loss.backward()
  File "/home/dev/venv/lib/python3.12/site-packages/torch/_tensor.py", line 630, in backward
    torch.autograd.backward(
  File "/home/dev/venv/lib/python3.12/site-packages/torch/autograd/graph.py", line 869, in _engine_run_backward
    return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
  File "<cublame>", line 174, in kernel
cublame.GuardIndexError: scatter_add index: value 7 at [0, 3] is outside [0, 5) (1 of 8)
"#,
        );
        assert_eq!((verdict.place.unwrap().line, verdict.certainty), (20, Certainty::Likely));
        assert_eq!(verdict.phase, Some(Phase::Backward));
    }
}

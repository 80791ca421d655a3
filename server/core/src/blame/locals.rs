//! The tensors of the frames that a verdict shows, from what the hook told of the failing exception's frames.

use super::user_code::Spot;
use crate::event::{Described, LocalKind};
use crate::verdict::{Frame, Object, Tensor};

/// `spots` are the frames of the exception. `frames` are those of the verdict: the same, or the calls that led to another
/// line. Of those the outer calls are the same ones, down to where the two part; the locals of a call that had returned
/// when the error surfaced are not known.
pub fn locals(frames: &[Frame], spots: &[Spot]) -> (Vec<Tensor>, Vec<Object>) {
    let same_call = |(frame, spot): &(&Frame, &Spot)| frame.file == spot.file && frame.function == spot.function;
    let shared = frames.iter().zip(spots).take_while(same_call).enumerate();
    let (mut tensors, mut objects) = (Vec::new(), Vec::new());
    for (frame, (_, spot)) in shared.filter(|(_, (frame, _))| frame.user) {
        for local in &spot.locals {
            let (name, class) = (local.name.clone(), local.class.clone());
            let object = |kind: &str, length| Object {
                name: name.clone(),
                class: class.clone(),
                kind: kind.to_owned(),
                frame,
                length,
            };
            match &local.what {
                LocalKind::Tensor(described) | LocalKind::Array(described) => {
                    tensors.push(tensor(&name, &class, frame, described));
                }
                LocalKind::Module => objects.push(object("module", None)),
                LocalKind::Optimizer => objects.push(object("optimizer", None)),
                LocalKind::Container { length } => objects.push(object("container", Some(*length))),
                LocalKind::Object => objects.push(object("object", None)),
            }
        }
    }
    (tensors, objects)
}

fn tensor(name: &str, class: &str, frame: usize, described: &Described) -> Tensor {
    let Described { shape, dtype, device, strides, layout, requires_grad, bytes } = described.clone();
    Tensor {
        name: name.to_owned(),
        class: Some(class.to_owned()),
        frame,
        shape,
        dtype,
        device,
        strides,
        layout,
        requires_grad,
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sources;
    use crate::event::{EventFrame, Local};

    /// `file.py function` a frame; each has one tensor by the name of its function and one module.
    fn spots(calls: &[&str]) -> Vec<Spot> {
        let spot = |call: &&str| {
            let (file, function) = call.split_once(' ').expect("two words");
            let local = |name: &str, what| Local { name: name.to_owned(), class: "C".to_owned(), what };
            let described = Described { shape: vec![2], dtype: "int64".to_owned(), ..Described::default() };
            let frame = EventFrame {
                file: file.to_owned(),
                function: function.to_owned(),
                line: 1,
                locals: vec![local(function, LocalKind::Tensor(described)), local("net", LocalKind::Module)],
                ..EventFrame::default()
            };
            Spot::of_event(&frame, None)
        };
        calls.iter().map(spot).collect()
    }

    #[track_caller]
    fn check(verdicts: &[&str], exceptions: &[&str], expected: &[(usize, &str)]) {
        let frames: Vec<Frame> = spots(verdicts).iter().map(|spot| spot.frame(&Sources::default())).collect();
        let (tensors, objects) = locals(&frames, &spots(exceptions));
        let told: Vec<(usize, &str)> = tensors.iter().map(|tensor| (tensor.frame, tensor.name.as_str())).collect();
        assert_eq!(told, expected);
        assert!(objects.iter().map(|object| object.frame).eq(expected.iter().map(|(frame, _)| *frame)));
    }

    #[test]
    fn the_frames_of_the_exception_have_their_own() {
        let calls = ["a.py main", "a.py forward"];
        check(&calls, &calls, &[(0, "main"), (1, "forward")]);
    }

    #[test]
    fn a_library_between_is_passed_over() {
        let calls = ["a.py main", "/v/site-packages/torch/nn/modules/module.py _call_impl", "a.py forward"];
        check(&calls, &calls, &[(0, "main"), (2, "forward")]);
    }

    /// The culprit was launched from a call that had returned: only the calls that both have are known.
    #[test]
    fn of_another_line_only_the_shared_calls_are_known() {
        check(&["a.py main", "a.py forward"], &["a.py main", "a.py loss"], &[(0, "main")]);
        check(&["b.py worker", "a.py forward"], &["a.py main", "a.py forward"], &[]);
        check(&["a.py main"], &["a.py main", "a.py forward"], &[(0, "main")]);
        check(&["a.py main"], &[], &[]);
    }
}

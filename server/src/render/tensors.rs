//! The tensors of a verdict in few words, the same in every rendering.

use cublame_core::Verdict;
use cublame_core::advice::size;
use cublame_core::verdict::Tensor;

/// `int64[32, 128] cuda:0`
pub fn short(tensor: &Tensor) -> String {
    format!("{} {}", with_shape(tensor), tensor.device)
}

/// `int64[32, 128]`
pub fn with_shape(tensor: &Tensor) -> String {
    let shape = tensor.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    format!("{}[{shape}]", tensor.dtype)
}

/// What is not as it usually is: a layout in memory other than row by row, a gradient that is kept.
pub fn remarks(tensor: &Tensor) -> Vec<String> {
    let strides = tensor.strides.as_ref().filter(|strides| !is_contiguous(&tensor.shape, strides));
    let strides = strides.map(|strides| {
        let strides = strides.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        format!("strides ({strides})")
    });
    let gradient = (tensor.requires_grad == Some(true)).then(|| "requires grad".to_owned());
    tensor.layout.clone().into_iter().chain(strides).chain(gradient).collect()
}

/// The tensors of a frame that its line names, in the line's order.
pub fn named_on<'a>(line: &str, verdict: &'a Verdict, frame: usize) -> Vec<&'a Tensor> {
    let of_frame = verdict.tensors.iter().filter(|tensor| tensor.frame == frame);
    let mut named: Vec<(usize, &Tensor)> =
        of_frame.filter_map(|tensor| Some((position(line, &tensor.name)?, tensor))).collect();
    named.sort_by_key(|(at, _)| *at);
    named.into_iter().map(|(_, tensor)| tensor).collect()
}

/// A line a tensor of a frame.
pub fn plain(verdict: &Verdict, frame: usize) -> String {
    let of_frame = verdict.tensors.iter().filter(|tensor| tensor.frame == frame);
    of_frame.map(in_full).collect::<Vec<_>>().join("\n")
}

/// `tok: int64[32, 128] cuda:0 (32.00 KiB, requires grad)`
pub fn in_full(tensor: &Tensor) -> String {
    let remarks: Vec<String> = tensor.bytes.map(size).into_iter().chain(remarks(tensor)).collect();
    let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) };
    format!("{}: {}{remarks}", tensor.name, short(tensor))
}

/// Dimensions of length one have any stride.
fn is_contiguous(shape: &[u64], strides: &[i64]) -> bool {
    let mut expected = 1;
    shape.len() == strides.len()
        && (shape.contains(&0)
            || shape.iter().zip(strides).rev().all(|(length, stride)| {
                let fits = *length == 1 || i64::try_from(expected).ok() == Some(*stride);
                expected = length.saturating_mul(expected);
                fits
            }))
}

/// Where a line names a tensor, or what holds it: `self.emb.weight` is named by `self.emb(x)`, `batch['x']` by `f(batch)`.
fn position(line: &str, name: &str) -> Option<usize> {
    let ends = name.char_indices().filter(|(_, character)| matches!(character, '.' | '[')).map(|(at, _)| at);
    let mut holders: Vec<&str> = ends.map(|end| &name[..end]).filter(|holder| *holder != "self").collect();
    holders.push(name);
    holders
        .into_iter()
        .rev()
        .find_map(|holder| word_at(line, holder).or_else(|| word_at(line, &holder.replace('\'', "\""))))
}

fn word_at(line: &str, word: &str) -> Option<usize> {
    let is_inner = |character: char| character.is_alphanumeric() || character == '_';
    let stands_alone = |at: usize| {
        let before = line[..at].chars().next_back().is_none_or(|it| !is_inner(it) && it != '.');
        let after = line[at + word.len()..].chars().next().is_none_or(|it| !is_inner(it));
        before && (after || word.ends_with(']'))
    };
    line.match_indices(word).map(|(at, _)| at).find(|at| stands_alone(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> String {
        let all = ["tok", "z", "self.scale", "self.emb.weight", "batch['x']", "xs[0]", "é"];
        let tensor = |name: &&str| Tensor { name: (*name).to_owned(), ..Tensor::default() };
        let verdict = include_str!("../../../tests/fixtures/verdicts/device-assert.json");
        let mut verdict: Verdict = serde_json::from_str(verdict).unwrap();
        verdict.tensors = all.iter().map(tensor).collect();
        named_on(line, &verdict, 0).iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_line_names_a_tensor_or_what_holds_it() {
        assert_eq!(names("z = self.emb(tok)"), "z self.emb.weight tok");
        assert_eq!(names("return self.forward(token, quiz, other.z)"), "");
        assert_eq!(names("loss(batch[\"x\"], self.scale)"), "batch['x'] self.scale");
        assert_eq!(names("step(batch, *xs)"), "batch['x'] xs[0]");
        assert_eq!(names("é = é + z2"), "é");
        assert_eq!(names("self.scale_up(1)"), "");
    }

    #[test]
    fn only_what_is_unusual_is_remarked() {
        let tensor = |shape: &[u64], strides: &[i64]| Tensor {
            shape: shape.to_vec(),
            strides: Some(strides.to_vec()),
            ..Tensor::default()
        };
        assert_eq!(remarks(&tensor(&[2, 3], &[3, 1])), [""; 0]);
        assert_eq!(remarks(&tensor(&[2, 1, 3], &[3, 77, 1])), [""; 0]);
        assert_eq!(remarks(&tensor(&[0, 3], &[1, 1])), [""; 0]);
        assert_eq!(remarks(&tensor(&[3, 2], &[1, 3])), ["strides (1, 3)"]);
        let parameter = Tensor { requires_grad: Some(true), layout: Some("sparse_coo".to_owned()), ..tensor(&[], &[]) };
        assert_eq!(remarks(&parameter), ["sparse_coo", "requires grad"]);
    }
}

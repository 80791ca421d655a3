//! Losses and draws that need probabilities and got something else.

use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::edits;
use crate::python::tree;
use crate::python::value::Value;

use super::Draft;
use super::spot::{Spot, as_receiver, is_repeatable};

/// A missing sigmoid: the loss that has it inside. Where the file speaks of a sigmoid anywhere, it may not be missing.
pub fn inputs(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    if spot.code.text().to_ascii_lowercase().contains("sigmoid") {
        return Vec::new();
    }
    let renamed = spot.calls().into_iter().find_map(|call| {
        let Value::Path { path, call: made } = spot.value(&call.func) else { return None };
        let (function, old, new) = match path.as_str() {
            "torch.nn.functional.binary_cross_entropy" => {
                (call.func.as_ref(), "binary_cross_entropy", "binary_cross_entropy_with_logits")
            }
            "torch.nn.BCELoss()" => (made?.0.func.as_ref(), "BCELoss", "BCEWithLogitsLoss"),
            _ => return None,
        };
        // A name that was imported would need another import.
        let Expr::Attribute(attribute) = function else { return None };
        let range = tree::byte_range(attribute.attr.range());
        (attribute.attr.as_str() == old)
            .then(|| Draft::new("with-logits", vec![Edit::replace(range.start, range.end, new)]).with("loss", new))
    });
    renamed.into_iter().collect()
}

/// A mask of 0 and 255 as the target of a binary loss.
pub fn targets(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let target = spot.calls().into_iter().find_map(|call| {
        let path = spot.path(&call.func)?;
        let is_binary = path == "torch.nn.functional.binary_cross_entropy" || path == "torch.nn.BCELoss()";
        is_binary.then(|| tree::argument(call, 1, "target")).flatten()
    });
    let Some(target) = target else { return Vec::new() };
    let range = tree::byte_range(target.range());
    let edit = Edit::replace(range.start, range.end, format!("({} > 0).float()", as_receiver(spot.code, target)));
    vec![Draft::new("binary-target", vec![edit]).with("what", spot.source(target))]
}

/// NaN, infinity or a negative number among the weights of a draw.
pub fn drawn(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let weights = spot.calls().into_iter().find_map(|call| {
        let name = tree::last_name(&call.func)?;
        if name != "multinomial" {
            return None;
        }
        if spot.path(&call.func).as_deref() == Some("torch.multinomial") {
            return tree::argument(call, 0, "input");
        }
        match call.func.as_ref() {
            Expr::Attribute(method) => Some(method.value.as_ref()),
            _ => None,
        }
    });
    let Some(weights) = weights.filter(|weights| is_repeatable(weights)) else { return Vec::new() };
    let (torch, import) = edits::imported(spot.code, "torch");
    let source = as_receiver(spot.code, weights);
    let what = spot.source(weights);
    let Some(quote) = super::check::quote_around(what) else { return Vec::new() };
    let lines = [
        format!("if not {torch}.isfinite({what}).all() or ({source} < 0).any():"),
        format!("{}raise ValueError({quote}{what} holds NaN, infinity or negative numbers{quote})", spot.step()),
    ];
    let Some(edits) = spot.insert_before(&lines) else { return Vec::new() };
    vec![Draft::new("check-finite", import.into_iter().chain(edits).collect()).with("what", what)]
}

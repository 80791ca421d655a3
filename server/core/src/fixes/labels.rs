//! A class label outside of the classes: checked before the loss, or left out of it.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::edits;
use crate::python::tree;
use crate::python::value::Value;

use super::Draft;
use super::check::Range;
use super::spot::{Spot, as_receiver, is_repeatable};

pub fn fixes(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let losses: Vec<Loss<'_>> = spot.calls().into_iter().filter_map(|call| Loss::of(spot, call)).collect();
    let [loss] = &losses[..] else { return Vec::new() };
    loss.ignoring(spot).into_iter().chain(loss.checked(spot)).collect()
}

struct Loss<'a> {
    logits: &'a Expr,
    target: &'a Expr,
    /// The call that `ignore_index` is an argument of: the loss itself, or the making of its module.
    settings: &'a ExprCall,
}

impl<'a> Loss<'a> {
    fn of(spot: &Spot<'_, '_, 'a>, call: &'a ExprCall) -> Option<Self> {
        let Value::Path { path, call: made } = spot.value(&call.func) else { return None };
        let settings = match path.as_str() {
            "torch.nn.functional.cross_entropy" | "torch.nn.functional.nll_loss" => call,
            "torch.nn.CrossEntropyLoss()" | "torch.nn.NLLLoss()" => made?.0,
            _ => return None,
        };
        Some(Self { logits: tree::argument(call, 0, "input")?, target: tree::argument(call, 1, "target")?, settings })
    }

    fn checked(&self, spot: &Spot<'_, '_, '_>) -> Option<Draft> {
        if !is_repeatable(self.logits) {
            return None;
        }
        let left_out = match tree::keyword(self.settings, "ignore_index") {
            Some(index) if is_repeatable(index) => spot.source(index).to_owned(),
            Some(_) => return None,
            // The default of torch.nn.functional.cross_entropy.
            None => "-100".to_owned(),
        };
        let size = format!("{}.size(1)", as_receiver(spot.code, self.logits));
        let range =
            Range { values: self.target, lowest: "0".to_owned(), size, left_out: Some(left_out), of: "classes" };
        range.checked(spot)
    }

    /// `ignore_index` for padding, by the name that the code has for it, and for the void label of segmentation.
    fn ignoring(&self, spot: &Spot<'_, '_, '_>) -> Option<Draft> {
        let said = self
            .settings
            .arguments
            .keywords
            .iter()
            .any(|keyword| keyword.arg.as_ref().is_none_or(|name| matches!(name.as_str(), "ignore_index")));
        if said {
            return None;
        }
        let of_images = spot.verdict.asserts.iter().any(|assert| {
            let kernel = assert.kernel.as_deref().unwrap_or_default();
            kernel.contains("nll_loss2d") || kernel.contains("SpatialClassNLL")
        });
        let index = if of_images { "255".to_owned() } else { self.padding(spot)? };
        let edit: Edit = edits::add_argument(spot.code, self.settings, &format!("ignore_index={index}"));
        Some(Draft::new("ignore-index", vec![edit]).with("index", index))
    }

    /// What the code calls the id of its padding.
    fn padding(&self, spot: &Spot<'_, '_, '_>) -> Option<String> {
        let scopes = [Some(spot.scope()), Some(spot.code.module_scope())];
        let before = self.settings.start();
        let parameters = spot.scope().function().map(|def| &def.parameters);
        let is_parameter = |name: &&&str| parameters.is_some_and(|parameters| parameters.includes(name));
        // The settings of a module that was made elsewhere cannot see a parameter of this function.
        let here = spot.site.is_some_and(|site| site.stmt.range().contains_range(self.settings.range()));
        if let Some(name) = PADDING.iter().find(|name| here && is_parameter(name)) {
            return Some((*name).to_owned());
        }
        for scope in scopes.into_iter().flatten() {
            let there = |name: &str| {
                let bindings = scope.table().all(name);
                bindings.len() == 1 && (scope.function() != spot.scope().function() || bindings[0].at < before)
            };
            if let Some(name) = PADDING.iter().find(|name| there(name)) {
                return Some((*name).to_owned());
            }
            if scope.table().all("tokenizer").first().is_some_and(|binding| binding.at < before) {
                return Some("tokenizer.pad_token_id".to_owned());
            }
        }
        None
    }
}

const PADDING: &[&str] = &["pad_token_id", "pad_id", "pad_idx", "pad_index", "PAD_ID", "PAD_IDX", "PAD_INDEX", "PAD"];

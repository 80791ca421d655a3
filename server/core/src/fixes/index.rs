//! An index outside of what it is looked up in: checked, clamped, or the table made large enough.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::code::{Code, Site};
use crate::lint::edits;
use crate::python::table::Bound;
use crate::python::tree;
use crate::python::value::{Scope, Value};

use super::Draft;
use super::check::Range;
use super::spot::{Spot, as_receiver, is_repeatable, line_start};

pub fn fixes(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let found = lookups(spot);
    let mut drafts: Vec<Draft> = Vec::new();
    // Of several lookups on a line nobody knows which one it was.
    if let [lookup] = &found[..] {
        drafts.extend(larger_table(spot, lookup));
    }
    drafts.extend(resized_model(spot.code));
    for lookup in &found {
        drafts.extend(lookup.range().checked(spot));
    }
    if let [lookup] = &found[..] {
        drafts.extend(lookup.clamped(spot));
    }
    drafts
}

/// An index and what it is looked up in.
struct Lookup<'a> {
    index: &'a Expr,
    /// As Python: how many places there are.
    size: String,
    from_end: bool,
    /// The call that made the table.
    made: Option<(&'a ExprCall, Scope<'a>)>,
    /// What there are `size` of.
    of: &'static str,
}

impl<'a> Lookup<'a> {
    fn range(&self) -> Range<'a> {
        let lowest = if self.from_end { format!("-{}", self.size) } else { "0".to_owned() };
        Range { values: self.index, lowest, size: self.size.clone(), left_out: None, of: self.of }
    }

    fn clamped(&self, spot: &Spot<'_, '_, '_>) -> Option<Draft> {
        let Range { lowest, size, values, .. } = self.range();
        // The last place of a size that is written out is written out too.
        let last = size.parse::<i64>().map_or_else(|_| format!("{size} - 1"), |size| (size - 1).to_string());
        let clamped = format!("{}.clamp({lowest}, {last})", as_receiver(spot.code, values));
        let range = tree::byte_range(values.range());
        let edit = Edit::replace(range.start, range.end, clamped);
        Some(Draft::new("clamp-index", vec![edit]).with("what", spot.source(values)))
    }
}

fn lookups<'a>(spot: &Spot<'_, '_, 'a>) -> Vec<Lookup<'a>> {
    let calls: Vec<Lookup<'a>> = spot.calls().into_iter().filter_map(|call| of_call(spot, call)).collect();
    if !calls.is_empty() {
        return calls;
    }
    let items: Vec<Lookup<'a>> = spot.evaluated().into_iter().filter_map(|expr| of_item(spot, expr)).collect();
    // `batch[key]` looks like an index too: only where there is one is it surely meant.
    if items.len() == 1 { items } else { Vec::new() }
}

fn of_call<'a>(spot: &Spot<'_, '_, 'a>, call: &'a ExprCall) -> Option<Lookup<'a>> {
    let callee = spot.value(&call.func);
    let path = match &callee {
        Value::Path { path, .. } => path.as_str(),
        _ => "",
    };
    let source = |expr: &'a Expr| is_repeatable(expr).then(|| as_receiver(spot.code, expr));
    match path {
        "torch.nn.Embedding()" | "torch.nn.EmbeddingBag()" => {
            let made = match &callee {
                Value::Path { call, .. } => call.clone(),
                _ => None,
            };
            let size = format!("{}.num_embeddings", source(&call.func)?);
            Some(Lookup { index: tree::argument(call, 0, "input")?, size, from_end: false, made, of: "rows" })
        }
        "torch.nn.functional.embedding" => {
            let size = format!("{}.size(0)", source(tree::argument(call, 1, "weight")?)?);
            Some(Lookup { index: tree::argument(call, 0, "input")?, size, from_end: false, made: None, of: "rows" })
        }
        "torch.nn.functional.one_hot" => {
            let classes = tree::argument(call, 1, "num_classes")?;
            let size = if is_repeatable(classes) { spot.source(classes).to_owned() } else { return None };
            Some(Lookup { index: tree::argument(call, 0, "tensor")?, size, from_end: false, made: None, of: "classes" })
        }
        _ => {
            let name = tree::last_name(&call.func)?;
            if !ALONG_A_DIMENSION.contains(&name.trim_end_matches('_')) {
                return None;
            }
            let is_function = path == format!("torch.{name}");
            let Expr::Attribute(method) = call.func.as_ref() else { return None };
            let of = if is_function { tree::argument(call, 0, "input")? } else { &method.value };
            let first = usize::from(is_function);
            let dimension = tree::argument(call, first, "dim")?;
            let index = tree::argument(call, first + 1, "index")?;
            let dimension = is_repeatable(dimension).then(|| spot.source(dimension))?;
            let size = format!("{}.size({dimension})", source(of)?);
            Some(Lookup { index, size, from_end: false, made: None, of: "places" })
        }
    }
}

/// Operations with a dimension and then an index into it, as functions of torch and as methods.
const ALONG_A_DIMENSION: &[&str] =
    &["gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill"];

/// `x[index]` and `x[:, index]`.
fn of_item<'a>(spot: &Spot<'_, '_, 'a>, expr: &'a Expr) -> Option<Lookup<'a>> {
    let Expr::Subscript(item) = expr else { return None };
    let parts: Vec<&Expr> = match item.slice.as_ref() {
        Expr::Tuple(tuple) => tuple.elts.iter().collect(),
        other => vec![other],
    };
    let may_be_index =
        |part: &Expr| matches!(part, Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::BinOp(_));
    let counts = parts.iter().all(|part| may_be_index(part) || matches!(part, Expr::Slice(_)));
    let mut indices = parts.iter().enumerate().filter(|(_, part)| may_be_index(part));
    let ((dimension, index), None) = (indices.next()?, indices.next()) else { return None };
    if !counts || !is_repeatable(&item.value) || !may_be_tensor(spot, index) {
        return None;
    }
    let size = format!("{}.size({dimension})", as_receiver(spot.code, &item.value));
    Some(Lookup { index, size, from_end: true, made: None, of: "places" })
}

/// A name that the failing frame had and that was no tensor is none.
fn may_be_tensor(spot: &Spot<'_, '_, '_>, expr: &Expr) -> bool {
    let Expr::Name(name) = expr else { return true };
    let tensors = &spot.verdict.tensors;
    tensors.is_empty() || tensors.iter().any(|tensor| tensor.name == name.id.as_str())
}

/// Another number of rows in the call that made the table, where it is written out: the tokenizer's, or what the index
/// that came needs.
fn larger_table<'a>(spot: &Spot<'_, '_, 'a>, lookup: &Lookup<'a>) -> Option<Draft> {
    let (made, scope) = lookup.made.as_ref()?;
    let rows = tree::argument(made, 0, "num_embeddings")?;
    let written = tree::integer(rows)?;
    let range = tree::byte_range(rows.range());
    if let Some(tokenizer) = tokenizer_in(spot.code, scope, made) {
        let rows = format!("len({tokenizer})");
        let edit = Edit::replace(range.start, range.end, rows.clone());
        return Some(Draft::new("rows-of-tokenizer", vec![edit]).with("rows", rows).with("written", written));
    }
    let (index, size) = spot.verdict.because.iter().find_map(|reason| values_of(reason))?;
    if size != written || index < size {
        return None;
    }
    let edit = Edit::replace(range.start, range.end, (index + 1).to_string());
    Some(Draft::new("rows-for-index", vec![edit]).with("rows", index + 1).with("index", index))
}

/// The numbers of `Expected 0 <= index < ind_dim_size(10), but got index = 12`: the index and the size.
fn values_of(reason: &str) -> Option<(i64, i64)> {
    let (before, after) = reason.split_once("but got index = ")?;
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    Some((number(after)?, number(before.rsplit_once('(')?.1)?))
}

/// The name of a tokenizer that is there where a call is made.
fn tokenizer_in<'a>(code: &Code<'_, 'a>, scope: &Scope<'a>, call: &ExprCall) -> Option<&'a str> {
    let in_function = scope.function().is_some();
    let tables = [(scope, true), (code.module_scope(), !in_function)];
    let mut names: Vec<&'a str> = Vec::new();
    for (scope, in_order) in tables {
        names.extend(scope.table().names().filter_map(|(name, bindings)| {
            let [only] = bindings else { return None };
            let Bound::Value(Expr::Call(made)) = &only.what else { return None };
            let is_there = !in_order || only.at < call.start();
            (is_there && is_pretrained(made, &["Tokenizer"])).then_some(name)
        }));
        if !names.is_empty() {
            break;
        }
    }
    names.sort_unstable();
    names.first().copied()
}

/// `AutoTokenizer.from_pretrained(..)`
fn is_pretrained(call: &ExprCall, words: &[&str]) -> bool {
    let Expr::Attribute(method) = call.func.as_ref() else { return false };
    let class = tree::last_name(&method.value).unwrap_or("");
    method.attr.as_str() == "from_pretrained" && words.iter().any(|word| class.contains(word))
}

/// Tokens were added to a tokenizer and the model's table was not resized.
fn resized_model(code: &Code<'_, '_>) -> Option<Draft> {
    if code.text().contains("resize_token_embeddings") {
        return None;
    }
    let models: Vec<(&Site<'_>, &str)> = code.sites.iter().filter_map(|site| Some((site, model_of(site)?))).collect();
    let [(model_site, model)] = models[..] else { return None };
    let added = code.calls.iter().find_map(|(index, call)| {
        let Expr::Attribute(method) = call.func.as_ref() else { return None };
        let adds = matches!(method.attr.as_str(), "add_tokens" | "add_special_tokens");
        let tokenizer = code.source(method.value.as_ref());
        (adds && is_repeatable(&method.value)).then_some((&code.sites[*index], tokenizer))
    });
    let (added_site, tokenizer) = added?;
    if !std::ptr::eq(added_site.block.as_ptr(), model_site.block.as_ptr()) {
        return None;
    }
    let later = if added_site.stmt.start() > model_site.stmt.start() { added_site.stmt } else { model_site.stmt };
    let (_, indentation) = line_start(code, later)?;
    let end = edits::own_lines(later, &code.module.lines)?.end;
    let newline = edits::line_end(code.text());
    let missing = if code.text()[..end].ends_with('\n') { "" } else { newline };
    let line = format!("{missing}{indentation}{model}.resize_token_embeddings(len({tokenizer})){newline}");
    Some(Draft::new("resize-embeddings", vec![Edit::insert(end, line)]).with("model", model))
}

/// The name in `model = AutoModelForCausalLM.from_pretrained(..)`.
fn model_of<'a>(site: &Site<'a>) -> Option<&'a str> {
    let Stmt::Assign(assign) = site.stmt else { return None };
    let ([Expr::Name(name)], Expr::Call(call)) = (&assign.targets[..], assign.value.as_ref()) else { return None };
    is_pretrained(call, &["Model", "ForCausalLM", "ForConditionalGeneration", "ForSequenceClassification"])
        .then_some(name.id.as_str())
}

//! Tensors of one operation on different devices, and devices that are not there.

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::edits::{self, add_argument};
use crate::python::tree;
use crate::python::value::Value;

use super::Draft;
use super::spot::{Spot, as_receiver, is_repeatable};

/// Brings what is on the CPU to where the rest is, as far as the failing frame's tensors tell.
pub fn moved(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let names = names_of(spot);
    let found = match (on_cpu(spot, &names), on_gpu(spot, &names)) {
        (cpu, Some(gpu)) if !cpu.is_empty() => to_the_other(&names, &cpu, &gpu),
        (_, Some(gpu)) => created(spot, &gpu),
        _ => None,
    };
    found.or_else(|| to_the_module(spot)).into_iter().collect()
}

/// Names that the statement reads, with where.
struct Read {
    name: String,
    range: std::ops::Range<usize>,
}

fn names_of(spot: &Spot<'_, '_, '_>) -> Vec<Read> {
    let read = |expr: &Expr| match expr {
        Expr::Name(name) if name.ctx.is_load() => {
            Some(Read { name: name.id.to_string(), range: tree::byte_range(name.range) })
        }
        _ => None,
    };
    spot.evaluated().into_iter().filter_map(read).collect()
}

fn on_cpu(spot: &Spot<'_, '_, '_>, names: &[Read]) -> BTreeSet<String> {
    let is_there = |read: &&Read| device_of(spot, &read.name).is_some_and(|device| device == "cpu");
    names.iter().filter(is_there).map(|read| read.name.clone()).collect()
}

fn on_gpu(spot: &Spot<'_, '_, '_>, names: &[Read]) -> Option<String> {
    let is_there = |read: &&Read| device_of(spot, &read.name).is_some_and(|device| device.starts_with("cuda"));
    names.iter().find(is_there).map(|read| read.name.clone())
}

/// Where a tensor of the failing frame was.
fn device_of<'s>(spot: &'s Spot<'_, '_, '_>, name: &str) -> Option<&'s str> {
    let verdict = spot.verdict;
    let line = verdict.place.as_ref().map(|place| place.line);
    let in_frame = |frame: usize| verdict.frames.get(frame).is_none_or(|frame| Some(frame.line) == line);
    let tensor = verdict.tensors.iter().find(|tensor| tensor.name == name && in_frame(tensor.frame))?;
    Some(tensor.device.as_str())
}

fn to_the_other(names: &[Read], cpu: &BTreeSet<String>, gpu: &str) -> Option<Draft> {
    let moved = names.iter().filter(|read| cpu.contains(&read.name));
    let edits = moved.map(|read| Edit::insert(read.range.end, format!(".to({gpu}.device)"))).collect();
    let what: Vec<&str> = cpu.iter().map(String::as_str).collect();
    Some(Draft::new("move-to-other", edits).with("what", what.join(", ")).with("other", gpu))
}

/// A tensor that the statement makes, on the CPU because nobody said where.
fn created(spot: &Spot<'_, '_, '_>, gpu: &str) -> Option<Draft> {
    let call = spot.calls().into_iter().find(|call| makes_on_cpu(spot, call))?;
    let edit = add_argument(spot.code, call, &format!("device={gpu}.device"));
    Some(Draft::new("create-on-device", vec![edit]).with("other", gpu))
}

fn makes_on_cpu<'a>(spot: &Spot<'_, '_, 'a>, call: &'a ExprCall) -> bool {
    const MAKERS: &[&str] = &[
        "tensor",
        "zeros",
        "ones",
        "full",
        "arange",
        "linspace",
        "eye",
        "rand",
        "randn",
        "randint",
        "empty",
        "tril_indices",
    ];
    let plain = call
        .arguments
        .keywords
        .iter()
        .all(|keyword| keyword.arg.as_ref().is_some_and(|name| !matches!(name.as_str(), "device" | "out")));
    let path = spot.path(&call.func).unwrap_or_default();
    plain && path.strip_prefix("torch.").is_some_and(|name| MAKERS.contains(&name))
}

/// The input of a module, to where its parameters are.
fn to_the_module(spot: &Spot<'_, '_, '_>) -> Option<Draft> {
    let calls = spot.calls();
    let mut fed = calls.iter().filter(|call| is_module(spot, &call.func) && is_repeatable(&call.func));
    let (call, None) = (fed.next()?, fed.next()) else { return None };
    let [input] = &call.arguments.args[..] else { return None };
    // The frame's own tensors say that it is on the GPU already: then the module is not, and this would not help.
    let is_on_gpu = matches!(input, Expr::Name(name)
        if device_of(spot, name.id.as_str()).is_some_and(|device| device != "cpu"));
    if is_on_gpu || !is_repeatable(input) {
        return None;
    }
    let module = spot.source(call.func.as_ref());
    let range = tree::byte_range(input.range());
    let moved = format!("{}.to(next({module}.parameters()).device)", as_receiver(spot.code, input));
    let draft = Draft::new("move-to-module", vec![Edit::replace(range.start, range.end, moved)]);
    Some(draft.with("what", spot.source(input)).with("module", module))
}

fn is_module<'a>(spot: &Spot<'_, '_, 'a>, callee: &'a Expr) -> bool {
    match spot.value(callee) {
        Value::Path { path, .. } => path.starts_with("torch.nn.") && path.ends_with("()"),
        Value::Instance { class, .. } => spot.code.program.derives_from(&class, &|base| base.starts_with("torch.nn.")),
        _ => false,
    }
}

/// A checkpoint from a GPU that is not there.
pub fn map_location(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let mut edits = Vec::new();
    for call in spot.calls() {
        let arguments = &call.arguments;
        let says_where = arguments.args.len() != 1
            || arguments.keywords.iter().any(|it| it.arg.as_ref().is_none_or(|name| name.as_str() == "map_location"));
        let loads = matches!(spot.path(&call.func).as_deref(), Some("torch.load" | "torch.jit.load"));
        if loads && !says_where {
            edits.push(add_argument(spot.code, call, "map_location=\"cpu\""));
        }
    }
    if edits.is_empty() { Vec::new() } else { vec![Draft::new("map-location", edits)] }
}

/// The CPU where there is no GPU.
pub fn chosen(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let (torch, import) = edits::imported(spot.code, "torch");
    let choice = |device: &str| format!("\"{device}\" if {torch}.cuda.is_available() else \"cpu\"");
    let mut edits = Vec::new();
    for expr in spot.evaluated() {
        let range = tree::byte_range(expr.range());
        match expr {
            Expr::StringLiteral(_) if tree::string(expr).is_some_and(|text| text == "cuda" || text == "cuda:0") => {
                edits.push(Edit::replace(range.start, range.end, choice(tree::string(expr).unwrap_or("cuda"))));
            }
            Expr::Call(call) if call.arguments.args.is_empty() && call.arguments.keywords.is_empty() => {
                if let Expr::Attribute(method) = call.func.as_ref()
                    && method.attr.as_str() == "cuda"
                    && !matches!(method.value.as_ref(), Expr::Name(name) if name.id.as_str() == torch)
                {
                    let name = method.attr.start().to_usize();
                    edits.push(Edit::replace(name, range.end, format!("to({})", choice("cuda"))));
                }
            }
            _ => {}
        }
    }
    if edits.is_empty() {
        return Vec::new();
    }
    edits.splice(0..0, import);
    vec![Draft::new("choose-device", edits)]
}

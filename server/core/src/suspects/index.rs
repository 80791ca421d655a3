//! Whether `value[index]` indexes a tensor with a tensor.

use ruff_python_ast::{Expr, ExprSubscript, UnaryOp};

use crate::python::libraries::{Origin, origin};
use crate::python::table::Bound;
use crate::python::value::{Scope, Value};
use crate::python::{Program, tree};

use super::fit::Guess;
use super::kernels::Operation;

/// What `value[index]` may be, read or written.
pub fn subscript<'a>(
    program: &Program<'a>,
    subscript: &'a ExprSubscript,
    written: bool,
    scope: &Scope<'a>,
) -> Option<Guess> {
    let index = index_kind(program, &subscript.slice, scope, 0);
    if index == Index::Host || !may_be_tensor(program, &subscript.value, scope) {
        return None;
    }
    let operation = if written { Operation::IndexWrite } else { Operation::IndexRead };
    let sure = match index {
        Index::Host => return None,
        Index::Tensor => 100,
        Index::Mask => 20,
        Index::Literal => 40,
        Index::Unknown => {
            let base = tree::last_name(&subscript.value).unwrap_or("").to_ascii_lowercase();
            let index = tree::last_name(&subscript.slice).unwrap_or("").to_ascii_lowercase();
            if MAPPING_WORDS.iter().any(|word| base == *word || base.ends_with(&format!("_{word}"))) {
                30
            } else if KEY_WORDS.contains(&index.as_str()) {
                35
            } else if index.contains("mask") {
                25
            } else if INDEX_WORDS.iter().any(|word| index.contains(word)) {
                90
            } else {
                75
            }
        }
    };
    Some((operation, sure))
}

/// Names of what is rather a dictionary or a list of Python's.
const MAPPING_WORDS: &[&str] = &[
    "cfg",
    "config",
    "args",
    "batch",
    "kwargs",
    "dict",
    "map",
    "cache",
    "registry",
    "vocab",
    "losses",
    "metrics",
    "history",
    "results",
    "meta",
    "params",
    "options",
    "state",
    "files",
    "paths",
    "names",
    "dataset",
    "loaders",
    "optimizers",
    "keys",
    "lookup",
    "stats",
    "meters",
    "shape",
    "sizes",
    "dims",
    "lines",
    "words",
    "argv",
];

const KEY_WORDS: &[&str] = &["key", "k", "name", "split", "phase", "mode", "field", "task", "epoch", "step", "rank"];

const INDEX_WORDS: &[&str] = &[
    "idx", "ind", "index", "pos", "ids", "label", "perm", "order", "sel", "neigh", "row", "col", "src", "dst", "tok",
    "target", "assign", "keep", "batch", "parent", "edge", "action", "choice", "lookup", "slot",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Index {
    /// A number, a slice, a string: checked on the host.
    Host,
    /// A boolean mask: its length is checked on the host, and it selects nothing that is not there.
    Mask,
    /// A list of numbers that is written out.
    Literal,
    Unknown,
    Tensor,
}

fn index_kind<'a>(program: &Program<'a>, index: &'a Expr, scope: &Scope<'a>, depth: u32) -> Index {
    if depth > 8 || !program.step() {
        return Index::Unknown;
    }
    let inner = |expr: &'a Expr| index_kind(program, expr, scope, depth + 1);
    match index {
        Expr::Tuple(tuple) => tuple.elts.iter().map(inner).max().unwrap_or(Index::Host),
        Expr::List(list) => match list.elts.iter().map(inner).max() {
            None | Some(Index::Host) => Index::Literal,
            Some(kind) => kind,
        },
        Expr::Compare(_) | Expr::BoolOp(_) => Index::Mask,
        Expr::UnaryOp(unary) => match unary.op {
            UnaryOp::Invert | UnaryOp::Not => Index::Mask,
            _ => inner(&unary.operand),
        },
        Expr::BinOp(binary) => {
            use ruff_python_ast::Operator::{BitAnd, BitOr, BitXor};
            let (left, right) = (inner(&binary.left), inner(&binary.right));
            if matches!(binary.op, BitAnd | BitOr | BitXor) && (left == Index::Mask || right == Index::Mask) {
                return Index::Mask;
            }
            left.max(right)
        }
        Expr::If(choice) => inner(&choice.body).max(inner(&choice.orelse)),
        Expr::Subscript(subscript) => {
            if tree::last_name(&subscript.value) == Some("shape") {
                return Index::Host;
            }
            match inner(&subscript.value) {
                // An item of a container of Python's may be anything.
                Index::Host | Index::Literal => Index::Unknown,
                kind => kind,
            }
        }
        Expr::Starred(starred) => inner(&starred.value),
        Expr::Name(name) => {
            let bindings = scope.table().all(name.id.as_str());
            if let [binding] = bindings {
                match &binding.what {
                    Bound::Value(value) if !std::ptr::eq(*value, index) => return inner(value),
                    Bound::Element(iterated, place) => return element_kind(program, iterated, *place, scope, depth),
                    _ => {}
                }
            }
            kind_of_value(&program.value(index, scope))
        }
        Expr::Call(call) => {
            let method = match call.func.as_ref() {
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => "",
            };
            match method {
                "item" | "tolist" | "size" | "dim" | "numel" | "index" | "get" | "keys" | "numpy" => {
                    return Index::Host;
                }
                "bool" | "eq" | "ne" | "gt" | "lt" | "ge" | "le" | "isnan" | "logical_not" => return Index::Mask,
                "long" | "argmax" | "argmin" | "argsort" | "nonzero" | "squeeze" | "unsqueeze" | "view" | "flatten"
                | "reshape" | "clamp" | "repeat" | "expand" | "to" | "cuda" | "int" | "permute" | "t" => {
                    return Index::Tensor;
                }
                _ => {}
            }
            kind_of_value(&program.value(index, scope))
        }
        Expr::Attribute(_) => kind_of_value(&program.value(index, scope)),
        _ => kind_of_value(&program.value(index, scope)),
    }
}

/// The kind of a loop's variable.
fn element_kind<'a>(
    program: &Program<'a>,
    iterated: &'a Expr,
    place: Option<usize>,
    scope: &Scope<'a>,
    depth: u32,
) -> Index {
    if let Expr::Call(call) = iterated {
        match (tree::last_name(&call.func).unwrap_or(""), place) {
            ("range" | "trange" | "count", _) | ("enumerate", Some(0)) | ("items", Some(0)) | ("keys", _) => {
                return Index::Host;
            }
            ("tqdm" | "reversed" | "sorted", _) => {
                let first = call.arguments.args.first();
                return first.map_or(Index::Unknown, |first| element_kind(program, first, place, scope, depth + 1));
            }
            _ => {}
        }
    }
    if let Expr::List(list) = iterated
        && place.is_none()
    {
        let kinds = list.elts.iter().map(|item| index_kind(program, item, scope, depth + 1));
        return kinds.max().unwrap_or(Index::Unknown);
    }
    Index::Unknown
}

fn kind_of_value(value: &Value<'_>) -> Index {
    match value {
        Value::Host | Value::Class(_) | Value::Function(_) | Value::Module(_) | Value::Lambda(..) => Index::Host,
        Value::Path { path, .. } => match path.as_str() {
            "torch.nonzero()" | "torch.where()" => Index::Tensor,
            "torch.isnan()" | "torch.isfinite()" | "torch.isinf()" | "torch.eq()" | "torch.ne()" => Index::Mask,
            _ if path.ends_with(".shape[]") || path.ends_with(".shape") || path.ends_with(".size()") => Index::Host,
            _ if path.starts_with("torch.") && path.contains("()") => Index::Tensor,
            _ if path.starts_with("torch.") => Index::Host,
            _ if path.starts_with("builtins.") && !path.contains("()") => Index::Unknown,
            _ => match origin(path) {
                Origin::Builtin | Origin::Standard => Index::Host,
                _ if path.starts_with("numpy") => Index::Literal,
                _ => Index::Unknown,
            },
        },
        Value::Any(values) => values.iter().map(kind_of_value).max().unwrap_or(Index::Unknown),
        _ => Index::Unknown,
    }
}

fn may_be_tensor<'a>(program: &Program<'a>, base: &'a Expr, scope: &Scope<'a>) -> bool {
    if matches!(tree::last_name(base), Some("shape" | "size" | "environ" | "argv" | "__dict__" | "state_dict")) {
        return false;
    }
    fn possible(value: &Value<'_>) -> bool {
        match value {
            Value::Unknown => true,
            Value::Path { path, .. } => match origin(path) {
                Origin::Builtin => !path.contains('('),
                Origin::Standard | Origin::Host => false,
                Origin::Framework => {
                    // `torch.nn.ModuleList()` and its like hold modules; a plain `torch.Tensor[..]` is a type.
                    let library_itself = !path.contains("()");
                    let container = path.contains(".nn.Module") || path.contains(".nn.Sequential");
                    let made = !path.starts_with("numpy") && !library_itself && !container;
                    made || path.ends_with("[]")
                }
                _ => true,
            },
            Value::Any(values) => values.iter().any(possible),
            _ => false,
        }
    }
    possible(&program.value(base, scope))
}

//! CUDA in a forked process: the processes started with spawn.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::code::{Site, is_main_guard};
use crate::lint::edits;
use crate::python::tree;

use super::Draft;
use super::spot::{Spot, line_start};

pub fn spawned(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let text = spot.code.text();
    if ["set_start_method", "multiprocessing_context", "get_context("].iter().any(|word| text.contains(word)) {
        return Vec::new();
    }
    let loaders: Vec<Edit> = loaders(spot)
        .into_iter()
        .map(|call| edits::add_argument(spot.code, call, "multiprocessing_context=\"spawn\""))
        .collect();
    let of_loaders = (!loaders.is_empty()).then(|| Draft::new("spawn-workers", loaders));
    of_loaders.into_iter().chain(start_method(spot)).collect()
}

/// The loaders with worker processes.
fn loaders<'a>(spot: &Spot<'_, '_, 'a>) -> Vec<&'a ExprCall> {
    let code = spot.code;
    let has_workers = |(index, call): &&(usize, &'a ExprCall)| {
        let workers = tree::argument(call, 5, "num_workers").is_some_and(|workers| tree::integer(workers) != Some(0));
        let path = code.path(&call.func, &code.sites[*index]).unwrap_or_default();
        workers && path.starts_with("torch.utils.data.") && path.ends_with("DataLoader")
    };
    code.calls.iter().filter(has_workers).map(|(_, call)| *call).collect()
}

/// `set_start_method("spawn")` as the first thing that the main part of a program does, where it starts processes.
fn start_method(spot: &Spot<'_, '_, '_>) -> Option<Draft> {
    let code = spot.code;
    let module = ["torch.multiprocessing", "multiprocessing"].into_iter().find_map(|library| code.name_of(library))?;
    let starts = code.calls.iter().any(|(_, call)| {
        matches!(call.func.as_ref(), Expr::Attribute(function)
            if matches!(function.attr.as_str(), "Process" | "Pool")
                && matches!(function.value.as_ref(), Expr::Name(name) if name.id.as_str() == module))
    });
    let is_guard = |site: &&Site<'_>| is_main_guard(site.stmt);
    let Stmt::If(guard) = code.sites.iter().find(is_guard)?.stmt else { return None };
    let (at, indentation) = line_start(code, guard.body.first()?)?;
    let newline = edits::line_end(code.text());
    let after_test = guard.test.end().to_usize() < at;
    let line = format!("{indentation}{module}.set_start_method(\"spawn\"){newline}");
    (starts && after_test).then(|| Draft::new("start-method", vec![Edit::insert(at, line)]))
}

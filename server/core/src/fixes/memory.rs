//! Out of memory: smaller batches with the same effect, activations that are computed again, no graph where none is
//! needed.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFor, StmtFunctionDef};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::code::{Code, Site};
use crate::lint::edits;
use crate::python::tree;

use super::Draft;
use super::spot::{Spot, line_start};

/// How many smaller batches make one step.
const PARTS: i64 = 4;

/// Gradients of several smaller batches before each step of the optimizer.
pub fn accumulated(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let code = spot.code;
    let loops: Vec<Training<'_>> = code.sites.iter().filter_map(|site| Training::of(code, site)).collect();
    let [training] = &loops[..] else { return Vec::new() };
    training.accumulating(spot).into_iter().collect()
}

/// A loop over batches with `loss.backward()` and `optimizer.step()` in its own body.
struct Training<'a> {
    stmt: &'a Stmt,
    looped: &'a StmtFor,
    zero: &'a Stmt,
    backward: usize,
    loss: &'a Expr,
    /// From the first statement after `backward` to the last `step()` in a row.
    steps: std::ops::Range<usize>,
}

impl<'a> Training<'a> {
    fn of(code: &Code<'_, 'a>, site: &Site<'a>) -> Option<Self> {
        let Stmt::For(looped) = site.stmt else { return None };
        let body = &looped.body;
        let (backward, loss) = body.iter().enumerate().find_map(|(at, stmt)| Some((at, method(stmt, "backward")?)))?;
        let is_step = |stmt: &Stmt| method(stmt, "step").is_some();
        let first = backward + 1 + body[backward + 1..].iter().position(is_step)?;
        let end = body[first..].iter().position(|stmt| !is_step(stmt)).map_or(body.len(), |after| first + after);
        let mut zeros = body.iter().enumerate().filter(|(_, stmt)| method(stmt, "zero_grad").is_some());
        let ((at, zero), None) = (zeros.next()?, zeros.next()) else { return None };
        let between = backward < at && at < end;
        // A scaler of mixed precision has a protocol of its own.
        let is_scaled = code.source(loss).contains(".scale(");
        (!between && !is_scaled && !looped.is_async).then_some(Self {
            stmt: site.stmt,
            looped,
            zero,
            backward,
            loss,
            steps: backward + 1..end,
        })
    }

    fn accumulating(&self, spot: &Spot<'_, '_, '_>) -> Option<Draft> {
        let code = spot.code;
        if code.text().contains("accumulation_steps") {
            return None;
        }
        let lines = &code.module.lines;
        let newline = edits::line_end(code.text());
        let (start, outer) = line_start(code, self.stmt)?;
        let (_, inner) = line_start(code, self.looped.body.first()?)?;
        let step = spot.step();
        let zero = code.source(self.zero);
        let (counter, mut edits) = self.counter(code)?;
        edits.push(Edit::insert(start, format!("{outer}accumulation_steps = {PARTS}{newline}{outer}{zero}{newline}")));
        let zero_lines = edits::own_lines(self.zero, lines)?;
        edits.push(Edit::delete(zero_lines.start, zero_lines.end));
        let loss = tree::byte_range(self.loss.range());
        edits.push(Edit::replace(loss.start, loss.end, format!("({} / accumulation_steps)", code.source(self.loss))));
        let body = &self.looped.body;
        let first = edits::own_lines(&body[self.steps.start], lines)?;
        let last = edits::own_lines(&body[self.steps.end - 1], lines)?;
        if body[self.backward..self.steps.end].iter().any(|stmt| !tree::blocks(stmt).is_empty() || is_long(code, stmt))
        {
            return None;
        }
        edits.push(Edit::insert(first.start, format!("{inner}if ({counter} + 1) % accumulation_steps == 0:{newline}")));
        for line in lines.line_of(first.start)..=lines.line_of(last.end.saturating_sub(1)) {
            let range = lines.line_range(line);
            if !code.text()[range.clone()].trim().is_empty() {
                edits.push(Edit::insert(range.start, step));
            }
        }
        let ends_file = if code.text()[..last.end].ends_with('\n') { "" } else { newline };
        edits.push(Edit::insert(last.end, format!("{ends_file}{inner}{step}{zero}{newline}")));
        let (key, smaller) = match smaller_batch(code) {
            Some(edit) => ("accumulate-with-batch", Some(edit)),
            None => ("accumulate", None),
        };
        edits.extend(smaller);
        edits.sort_by_key(|edit| edit.start);
        Some(Draft::new(key, edits).with("parts", PARTS))
    }

    /// The name that counts the batches: that of `enumerate`, or a new one.
    fn counter(&self, code: &Code<'_, '_>) -> Option<(String, Vec<Edit>)> {
        let iterated = self.looped.iter.as_ref();
        if let Expr::Call(call) = iterated
            && tree::dotted(&call.func).as_deref() == Some("enumerate")
        {
            let Expr::Tuple(target) = self.looped.target.as_ref() else { return None };
            let Some(Expr::Name(counter)) = target.elts.first() else { return None };
            return (call.arguments.len() == 1).then(|| (counter.id.to_string(), Vec::new()));
        }
        let target = self.looped.target.as_ref();
        let source = code.source(target);
        let source = match target {
            Expr::Tuple(tuple) if !tuple.parenthesized => format!("({source})"),
            _ => source.to_owned(),
        };
        let taken = ["step", "batch_index"].into_iter().find(|name| !code.text().contains(*name))?;
        let (target, over) = (tree::byte_range(target.range()), tree::byte_range(iterated.range()));
        let edits = vec![
            Edit::replace(target.start, target.end, format!("{taken}, {source}")),
            Edit::insert(over.start, "enumerate("),
            Edit::insert(over.end, ")"),
        ];
        Some((taken.to_owned(), edits))
    }
}

/// What a statement calls a method of: `x` in `x.backward()`.
fn method<'a>(stmt: &'a Stmt, name: &str) -> Option<&'a Expr> {
    let Stmt::Expr(only) = stmt else { return None };
    let Expr::Call(call) = only.value.as_ref() else { return None };
    let Expr::Attribute(attribute) = call.func.as_ref() else { return None };
    (attribute.attr.as_str() == name).then_some(attribute.value.as_ref())
}

/// Does a string of the statement go over lines, so that its lines cannot be indented?
fn is_long(code: &Code<'_, '_>, stmt: &Stmt) -> bool {
    let mut long = false;
    for expr in tree::own_expressions(stmt) {
        tree::each_expression(expr, &mut |expr| {
            let string = matches!(expr, Expr::StringLiteral(_) | Expr::FString(_) | Expr::BytesLiteral(_));
            long = long || string && code.source(expr).contains('\n');
        });
    }
    long
}

/// The batch size of the file's one loader, where it is written out.
fn smaller_batch(code: &Code<'_, '_>) -> Option<Edit> {
    let loaders = code.calls.iter().filter(|(_, call)| tree::last_name(&call.func) == Some("DataLoader"));
    let mut sizes = loaders.map(|(_, call)| tree::argument(call, 1, "batch_size"));
    let (size, None) = (sizes.next()??, sizes.next()) else { return None };
    let number = tree::integer(size).filter(|number| *number >= PARTS && number % PARTS == 0)?;
    let range = tree::byte_range(size.range());
    Some(Edit::replace(range.start, range.end, (number / PARTS).to_string()))
}

/// The blocks of a model computed again in the backward pass: `x = block(x)` in a loop over `self.blocks`.
pub fn checkpointed(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let code = spot.code;
    let loops = code.sites.iter().filter_map(|site| {
        let Stmt::For(looped) = site.stmt else { return None };
        code.scope(site).function().filter(|def| def.name.as_str() == "forward")?;
        let over = match looped.iter.as_ref() {
            Expr::Call(call) if tree::dotted(&call.func).as_deref() == Some("enumerate") => {
                call.arguments.args.first()?
            }
            other => other,
        };
        let of_self = matches!(over, Expr::Attribute(attribute)
            if matches!(attribute.value.as_ref(), Expr::Name(name) if name.id.as_str() == "self"));
        let block = match looped.target.as_ref() {
            Expr::Tuple(tuple) => tuple.elts.last()?,
            target => target,
        };
        let Expr::Name(block) = block else { return None };
        let call = looped.body.iter().find_map(|stmt| block_call(stmt, block.id.as_str()))?;
        of_self.then_some(call)
    });
    let calls: Vec<&ExprCall> = loops.collect();
    let [call] = calls[..] else { return Vec::new() };
    let (module, import) = match code.name_of("torch.utils.checkpoint") {
        Some(name) => (name.to_owned(), None),
        None if code.text().contains("import torch.utils.checkpoint") => ("torch.utils.checkpoint".to_owned(), None),
        None => {
            let newline = edits::line_end(code.text());
            let import = Edit::insert(edits::after_imports(code), format!("import torch.utils.checkpoint{newline}"));
            ("torch.utils.checkpoint".to_owned(), Some(import))
        }
    };
    let block = tree::byte_range(call.func.range());
    let first = call.arguments.args.first().map_or(block.end + 1, |first| first.start().to_usize());
    let name = code.source(call.func.as_ref());
    let edits = [
        Edit::replace(block.start, block.end, format!("{module}.checkpoint")),
        Edit::insert(first, format!("{name}, ")),
        edits::add_argument(code, call, "use_reentrant=False"),
    ];
    vec![Draft::new("checkpoint-blocks", import.into_iter().chain(edits).collect()).with("block", name)]
}

/// The call in `x = block(x, mask)`.
fn block_call<'a>(stmt: &'a Stmt, block: &str) -> Option<&'a ExprCall> {
    let Stmt::Assign(assign) = stmt else { return None };
    let Expr::Call(call) = assign.value.as_ref() else { return None };
    let plain =
        call.arguments.args.iter().all(|argument| !argument.is_starred_expr()) && !call.arguments.args.is_empty();
    (plain && matches!(call.func.as_ref(), Expr::Name(name) if name.id.as_str() == block)).then_some(call)
}

/// An evaluation that keeps the graph of every batch.
pub fn without_grad(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let code = spot.code;
    let Some(def) = spot.site.and_then(|site| code.scope(&site).function()) else { return Vec::new() };
    if !is_evaluation(code, def) {
        return Vec::new();
    }
    let is_it = |site: &&Site<'_>| matches!(site.stmt, Stmt::FunctionDef(other) if std::ptr::eq(other, def));
    let Some(stmt) = code.sites.iter().find(is_it).map(|site| site.stmt) else { return Vec::new() };
    let Some((at, indentation)) = line_start(code, stmt) else { return Vec::new() };
    let (torch, import) = edits::imported(code, "torch");
    let newline = edits::line_end(code.text());
    let edit = Edit::insert(at, format!("{indentation}@{torch}.no_grad(){newline}"));
    let edits = import.into_iter().chain([edit]).collect();
    vec![Draft::new("without-grad", edits).with("function", def.name.as_str())]
}

/// A function that is named as one and neither trains nor does without the graph already.
fn is_evaluation(code: &Code<'_, '_>, def: &StmtFunctionDef) -> bool {
    let name = def.name.as_str().to_ascii_lowercase();
    let named =
        ["eval", "valid", "test", "infer", "predict", "sample", "generate"].iter().any(|word| name.contains(word));
    let source = code.source(def);
    named && !["backward(", "no_grad", "inference_mode", "requires_grad"].iter().any(|word| source.contains(word))
}

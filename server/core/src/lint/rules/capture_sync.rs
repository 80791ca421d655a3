use std::collections::HashSet;

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input, code::Code};
use crate::python::tree;
use crate::python::value::{Scope, Value};

pub const RULE: Rule = Rule {
    name: "capture-sync",
    severity: Severity::Error,
    what: "A call that waits for the GPU inside the capture of a CUDA graph.",
    why: "While a stream is capturing nothing runs, so nothing can be waited for: the capture fails with `operation not permitted \
          when stream is capturing`, and everything captured so far is lost.",
    example: "with torch.cuda.graph(g):\n    y = net(x)\n    print(y.sum().item())",
    fix: "Read the value after the replay, outside the `with` block.",
    quiet: "Inside functions whose definition is not in the file, and for calls that only may wait, such as `bool(tensor)`.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let mut search = Search { code, found: Vec::new(), seen: HashSet::new() };
    for site in &code.sites {
        let Stmt::With(with) = site.stmt else { continue };
        let captures = with.items.iter().any(|item| {
            matches!(&item.context_expr, Expr::Call(call)
                if tree::last_name(&call.func) == Some("graph")
                    && code.path(&call.func, site).as_deref() == Some("torch.cuda.graph"))
        });
        if captures {
            search.block(&with.body, code.scope(site), 0);
        }
    }
    search.found
}

struct Search<'c, 'p, 'a> {
    code: &'c Code<'p, 'a>,
    found: Vec<Finding>,
    seen: HashSet<usize>,
}

impl<'a> Search<'_, '_, 'a> {
    fn block(&mut self, block: &'a [Stmt], scope: &Scope<'a>, depth: u32) {
        if depth > 8 || !self.seen.insert(block.as_ptr() as usize) {
            return;
        }
        let mut calls: Vec<&'a ExprCall> = Vec::new();
        tree::each_statement(block, &mut |stmt| {
            for expr in tree::own_expressions(stmt) {
                tree::each_expression(expr, &mut |expr| {
                    if let Expr::Call(call) = expr {
                        calls.push(call);
                    }
                });
            }
        });
        for call in calls {
            if let Some(what) = self.waits(call, scope) {
                let message = format!("{what} waits for the GPU, which fails while a graph is captured");
                self.found.push(RULE.finding(tree::byte_range(call.range()), message));
                continue;
            }
            let function = match self.code.program.value(&call.func, scope) {
                Value::Function(function) => Some(function),
                instance @ Value::Instance { .. } => match self.code.program.attribute(&instance, "forward") {
                    Value::Function(function) => Some(function),
                    _ => None,
                },
                _ => None,
            };
            if let Some(function) = function {
                let inner = Scope::of_call(self.code.program, &function, Some((call, scope)));
                self.block(&function.def.body, &inner, depth + 1);
            }
        }
    }

    fn waits(&self, call: &'a ExprCall, scope: &Scope<'a>) -> Option<String> {
        let name = tree::last_name(&call.func)?;
        let Expr::Attribute(attribute) = call.func.as_ref() else { return None };
        let no_arguments = call.arguments.args.is_empty() && call.arguments.keywords.is_empty();
        match name {
            "item" | "tolist" | "cpu" if no_arguments => {
                let of = self.code.program.value(&attribute.value, scope);
                let tensor = match &of {
                    Value::Unknown => true,
                    Value::Path { path, .. } => path.starts_with("torch.") && path.contains("()"),
                    _ => false,
                };
                tensor.then(|| format!("`.{name}()`"))
            }
            "synchronize" => {
                let of = self.code.program.value(&call.func, scope);
                let known = matches!(&of, Value::Path { path, .. } if path.starts_with("torch.cuda."));
                known.then(|| "`synchronize()`".to_owned())
            }
            _ => None,
        }
    }
}

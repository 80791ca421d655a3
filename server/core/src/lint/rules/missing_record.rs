use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input, code, edits};
use crate::python::tree;

use super::is_test;

pub const RULE: Rule = Rule {
    name: "missing-record",
    severity: Severity::Hint,
    what: "The main function of a torchrun program has no `@record`.",
    why: "Without it torchrun's summary says only that a rank failed (`error_file: <N/A>`). With it the summary carries the \
          exception of the rank that failed first.",
    example: "def main():\n    dist.init_process_group(\"nccl\")\n\nif __name__ == \"__main__\":\n    main()",
    fix: "Decorate it with `torch.distributed.elastic.multiprocessing.errors.record`.",
    quiet: "In tests, and where the program is not started by torchrun as far as the file shows: it does not read LOCAL_RANK.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let text = code.text();
    if is_test(input.file.path)
        || !text.contains("LOCAL_RANK")
        || !text.contains("init_process_group")
        || text.contains("errors import record")
    {
        return Vec::new();
    }
    let starts = code.calls.iter().any(|(index, call)| {
        tree::last_name(&call.func) == Some("init_process_group")
            && code
                .path(&call.func, &code.sites[*index])
                .is_some_and(|path| path == "torch.distributed.init_process_group")
    });
    let spawns = code.calls.iter().any(|(_, call)| tree::last_name(&call.func) == Some("spawn"));
    if !starts || spawns {
        return Vec::new();
    }
    let Some(Stmt::If(guard)) = code.module.body().iter().rfind(|stmt| code::is_main_guard(stmt)) else {
        return Vec::new();
    };
    let main = code.module.body().iter().find_map(|stmt| match stmt {
        Stmt::FunctionDef(def) if def.name.as_str() == "main" => Some((stmt, def)),
        _ => None,
    });
    let Some((stmt, def)) = main else { return Vec::new() };
    let is_called = guard.body.iter().any(|stmt| {
        tree::own_expressions(stmt).into_iter().any(|expr| {
            let mut called = false;
            tree::each_expression(expr, &mut |expr| {
                if let ruff_python_ast::Expr::Call(call) = expr {
                    called = called || tree::dotted(&call.func).as_deref() == Some("main");
                }
            });
            called
        })
    });
    if !is_called || !def.decorator_list.is_empty() {
        return Vec::new();
    }
    let newline = edits::line_end(text);
    let import = format!("from torch.distributed.elastic.multiprocessing.errors import record{newline}");
    let edit = vec![
        Edit::insert(edits::after_imports(code), import),
        Edit::insert(stmt.start().to_usize(), format!("@record{newline}")),
    ];
    let message = "without `@record` torchrun cannot say what the failing rank raised";
    vec![RULE.finding(tree::byte_range(def.name.range()), message).with_fix("Decorate it with @record", Some(edit))]
}

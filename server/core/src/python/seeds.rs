//! Where a program sets the seeds of its random numbers.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::{Module, tree};

/// A call that seeds a generator, as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    pub line: u32,
    pub text: String,
}

/// Every call of a module that seeds something, in its order, functions and classes included.
pub fn seeds(module: &Module) -> Vec<Seed> {
    let mut found = Vec::new();
    in_block(module.body(), module, &mut found);
    found
}

fn in_block(block: &[Stmt], module: &Module, found: &mut Vec<Seed>) {
    tree::each_statement(block, &mut |stmt| {
        match stmt {
            Stmt::FunctionDef(function) => in_block(&function.body, module, found),
            Stmt::ClassDef(class) => in_block(&class.body, module, found),
            _ => {}
        }
        for expr in tree::own_expressions(stmt) {
            tree::each_expression(expr, &mut |expr| {
                let Some(call) = expr.as_call_expr() else { return };
                if is_seeding(&call.func) {
                    let range = tree::byte_range(call.range());
                    let text = module.lines.text().get(range.clone()).unwrap_or_default().to_owned();
                    found.push(Seed { line: module.lines.line_of(range.start), text });
                }
            });
        }
    });
}

/// By the last name alone where it says enough; `seed` is a name of many things, so it needs its module.
fn is_seeding(function: &Expr) -> bool {
    match tree::last_name(function) {
        Some("manual_seed" | "manual_seed_all" | "seed_everything" | "set_seed" | "default_rng" | "PRNGKey") => true,
        Some("seed" | "key") => {
            let owner = function.as_attribute_expr().and_then(|it| tree::last_name(&it.value));
            owner == Some("random")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_seed_is_found_with_its_line() {
        let text = "\
import random, torch, numpy as np, jax
# torch.manual_seed(9)
def main(args):
    torch.manual_seed(args.seed)
    if args.fast:
        np.random.seed(0)
    random.seed(1); plant.seed(2)
    generator = torch.Generator().manual_seed(3)
    key = jax.random.PRNGKey(4)
";
        let module = Module::parse("train.py", None, text);
        let found: Vec<(u32, String)> = seeds(&module).into_iter().map(|seed| (seed.line, seed.text)).collect();
        let expected = [
            (4, "torch.manual_seed(args.seed)"),
            (6, "np.random.seed(0)"),
            (7, "random.seed(1)"),
            (8, "torch.Generator().manual_seed(3)"),
            (9, "jax.random.PRNGKey(4)"),
        ];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }
}

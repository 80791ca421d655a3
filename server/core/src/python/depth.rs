//! Syntax trees so deep that walking or freeing them would overflow the stack are left out.
//!
//! The parser takes any depth, since it grows its stack; what comes after it recurses in the ordinary way.

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{Expr, ModModule, PySourceType, Stmt};
use ruff_python_parser::{Parsed, parse_unchecked_source};

/// A statement of fewer tokens cannot be deep enough to matter.
const HARMLESS_TOKENS: usize = 2_000;
const DEEPEST: u32 = 500;
/// More than freeing one level of a tree takes, also without optimisation. A level has at least one token.
const STACK_PER_LEVEL: usize = 2_048;

pub fn without_what_nobody_wrote(parsed: Parsed<ModModule>, kind: PySourceType) -> Parsed<ModModule> {
    let longest = longest_statement(&parsed);
    if longest < HARMLESS_TOKENS || !is_deep(&parsed) {
        return parsed;
    }
    stacker::grow(longest.saturating_mul(STACK_PER_LEVEL), move || drop(parsed));
    parse_unchecked_source("", kind)
}

/// The number of tokens of the longest logical line.
fn longest_statement(parsed: &Parsed<ModModule>) -> usize {
    let (mut longest, mut tokens) = (0, 0);
    for token in parsed.tokens() {
        tokens = if token.kind() == TokenKind::Newline { 0 } else { tokens + 1 };
        longest = longest.max(tokens);
    }
    longest
}

fn is_deep(parsed: &Parsed<ModModule>) -> bool {
    struct Depth {
        now: u32,
        deep: bool,
    }
    impl Depth {
        fn within(&mut self, walk: impl FnOnce(&mut Self)) {
            self.now += 1;
            self.deep = self.deep || self.now > DEEPEST;
            if !self.deep {
                walk(self);
            }
            self.now -= 1;
        }
    }
    impl<'a> SourceOrderVisitor<'a> for Depth {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            self.within(|depth| source_order::walk_stmt(depth, stmt));
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.within(|depth| source_order::walk_expr(depth, expr));
        }
    }
    let mut depth = Depth { now: 0, deep: false };
    depth.visit_body(parsed.suite());
    depth.deep
}

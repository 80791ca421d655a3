//! A check of a tensor's values before the call that they would break, as an exception that names them.

use ruff_python_ast::Expr;

use super::Draft;
use super::spot::{Spot, as_receiver, is_repeatable};

/// The range that the values of a tensor must be in.
pub struct Range<'a> {
    pub values: &'a Expr,
    /// As Python: the lowest value that is allowed, and the first above that is not.
    pub lowest: String,
    pub size: String,
    /// A value that the call leaves out, as Python.
    pub left_out: Option<String>,
    /// What `size` counts, for the message: `rows`.
    pub of: &'static str,
}

impl Range<'_> {
    /// The draft that puts the check before the statement.
    pub fn checked(&self, spot: &Spot<'_, '_, '_>) -> Option<Draft> {
        if !is_repeatable(self.values) {
            return None;
        }
        let source = as_receiver(spot.code, self.values);
        let what = spot.source(self.values);
        let Self { lowest, size, of, .. } = self;
        let is_short = matches!(self.values, Expr::Name(_) | Expr::Attribute(_));
        let (name, first) = match &self.left_out {
            None if is_short => (source, None),
            None => {
                let name = unused(spot, ["index", "checked", "values_to_check"])?;
                (name.to_owned(), Some(format!("{name} = {what}")))
            }
            Some(left_out) => {
                let name = unused(spot, ["valid", "checked", "labels_to_check"])?;
                (name.to_owned(), Some(format!("{name} = {source}[{source} != {left_out}]")))
            }
        };
        let quote = quote_around(&format!("{what}{name}{size}"))?;
        let count = if size.parse::<u64>().is_ok() { size.clone() } else { format!("{{{size}}}") };
        let limits = format!("{lowest} <= {name}.min().item() <= {name}.max().item() < {size}");
        let message = format!(
            "f{quote}{what} holds {{{name}.min().item()}} to {{{name}.max().item()}}, and there are {count} {of}{quote}"
        );
        let mut lines: Vec<String> = first.into_iter().collect();
        lines.push(format!("if {name}.numel() and not {limits}:"));
        lines.push(format!("{}raise IndexError({message})", spot.step()));
        Some(Draft::new("check-range", spot.insert_before(&lines)?).with("what", what))
    }
}

/// The first of these names that the file does not speak of.
fn unused(spot: &Spot<'_, '_, '_>, names: [&'static str; 3]) -> Option<&'static str> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    names.into_iter().find(|name| spot.code.text().split(|character| !is_word(character)).all(|word| word != *name))
}

/// A quote that a text does not hold; None for text that an f-string cannot hold before Python 3.12.
pub fn quote_around(text: &str) -> Option<char> {
    if text.contains(['\\', '{', '}', '\n', '#']) {
        return None;
    }
    ['"', '\''].into_iter().find(|quote| !text.contains(*quote))
}

//! Draws terminal output as an SVG: the README's picture is real output of the binary.
//!
//! usage: CLICOLOR_FORCE=1 cublame demo | cargo run -p cublame-tests --example picture > docs/demo.svg

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let mut output = String::new();
    std::io::stdin().read_to_string(&mut output)?;
    let picture = anstyle_svg::Term::new().background(true).min_width_px(900).render_svg(&output);
    std::io::stdout().write_all(picture.as_bytes())
}

//! A piece of HTML that cannot hold anything of the data's as markup: markup is only ever a literal of this program.

use std::fmt::Write as _;

#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    pub fn into_string(self) -> String {
        self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn append(&mut self, other: Html) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Markup of our own.
    pub fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text of unknown origin: it is shown, whatever it holds. It may stand in an attribute's double quotes as well.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(character),
                // What turns the reading order round would make code look like other code (CVE-2021-42574).
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    let _ = write!(self.0, "\\u{:04x}", u32::from(character));
                }
                _ if character.is_control() => self.0.push('\u{fffd}'),
                _ => self.0.push(character),
            }
        }
        self
    }

    pub fn number(&mut self, number: f64) -> &mut Self {
        // Two decimals are finer than any pixel.
        let _ = write!(self.0, "{}", (number * 100.0).round() / 100.0);
        self
    }

    /// `inside("<b>", "x", "</b>")`
    pub fn inside(&mut self, open: &'static str, text: &str, close: &'static str) -> &mut Self {
        self.markup(open).text(text).markup(close)
    }

    pub fn code(&mut self, text: &str) -> &mut Self {
        self.inside("<code>", text, "</code>")
    }

    /// A sentence in which backticks mark code, as the catalogue's do.
    pub fn prose(&mut self, text: &str) -> &mut Self {
        for (number, part) in text.split('`').enumerate() {
            if number % 2 == 1 {
                self.code(part)
            } else {
                self.text(part)
            };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut html = Html::default();
        html.text("<b a='1' c=\"2\">&\u{1b}[31m\u{202e}x");
        assert_eq!(html.into_string(), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\u{fffd}[31m\\u202ex");
    }

    #[test]
    fn backticks_mark_code() {
        let mut html = Html::default();
        html.prose("set `<a>` or `b");
        assert_eq!(html.into_string(), "set <code>&lt;a&gt;</code> or <code>b</code>");
    }
}

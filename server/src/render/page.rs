//! The page of a run: one file that needs nothing else, for a browser, a webview, a printer and a phone.
//!
//! It has no script, and its policy lets none in. Whatever a log or a report says is text: see [`Html`].

mod code;
mod gpus;
mod html;
mod parts;
mod plot;

use cublame_core::Verdict;
use cublame_core::catalog::{Language, Texts};
use sha2::{Digest, Sha256};

use crate::session::Told;
use html::Html;

/// The whole page.
pub fn page(told: &Told, texts: &Texts) -> String {
    let page = Page { told, texts };
    let mut html = Html::default();
    html.markup("<!DOCTYPE html>\n<html lang=\"");
    html.markup(match texts.language() {
        Language::English => "en",
        Language::SimplifiedChinese => "zh-CN",
    });
    html.markup("\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"");
    html.text(&policy()).markup("\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.markup("<meta name=\"referrer\" content=\"no-referrer\"><title>").text(&page.title());
    html.markup("</title><style>").markup(STYLE).markup("</style></head><body><main>");
    html.append(page.content());
    html.markup("</main></body></html>\n");
    html.into_string()
}

/// Nothing is loaded, run or sent; the one style is known by its hash.
fn policy() -> String {
    let hash = base64(&Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

const STYLE: &str = include_str!("page/style.css");

struct Page<'a> {
    told: &'a Told,
    texts: &'a Texts,
}

impl Page<'_> {
    fn title(&self) -> String {
        let summary = self.root().map_or_else(|| self.say("no-failure"), |verdict| verdict.summary.clone());
        format!("{summary} · cublame")
    }

    fn content(&self) -> Html {
        let mut html = Html::default();
        html.append(self.brand()).append(self.lead());
        if let Some(root) = self.root() {
            html.append(self.verdict(root));
        }
        html.append(self.gpu_over_time()).append(self.ranks()).append(self.others());
        html.append(self.log()).append(self.environment()).append(self.foot());
        html
    }

    /// What is said of the root cause, and of any other failure below it.
    fn verdict(&self, verdict: &Verdict) -> Html {
        let mut html = Html::default();
        html.append(self.code(verdict)).append(self.reasons(verdict)).append(self.advice(verdict));
        html.append(self.asserts(verdict)).append(self.memory(verdict)).append(self.frames(verdict));
        html
    }

    fn root(&self) -> Option<&Verdict> {
        self.told.verdicts.first()
    }

    fn say(&self, key: &str) -> String {
        self.say_with(key, &[])
    }

    fn say_with(&self, key: &str, values: &[(&str, &str)]) -> String {
        self.texts.line(&format!("report.{key}"), values)
    }

    /// A section with a heading of the catalogue's; nothing without a body.
    fn section(&self, heading: &str, body: Html) -> Html {
        let mut html = Html::default();
        if !body.is_empty() {
            html.markup("<section>").inside("<h2>", &self.say(heading), "</h2>");
            html.append(body).markup("</section>");
        }
        html
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let padded = [three[0], three.get(1).copied().unwrap_or(0), three.get(2).copied().unwrap_or(0)];
        let number = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for place in 0..=three.len() {
            text.push(char::from(LETTERS[(number >> (18 - 6 * place) & 63) as usize]));
        }
        text.extend(std::iter::repeat_n('=', 3 - three.len()));
    }
    text
}

#[cfg(test)]
mod tests;

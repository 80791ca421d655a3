//! `textDocument/hover`: the verdict of the line, with its reasons and what to do.

use cublame_core::catalog::Texts;
use cublame_core::text::LineIndex;
use tower_lsp::ls_types::{Hover, HoverContents, HoverParams, MarkupContent, MarkupKind};

use super::super::backend::Backend;
use super::super::diagnostics;
use super::super::features::Features;
use crate::render::{markdown, tensors};
use crate::world::mark::{Mark, Told};

pub fn hover(backend: &Backend, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let document = backend.documents.get(&at.text_document.uri)?;
    let snapshot = backend.world.snapshot();
    let path = document.path.as_ref()?;
    let findings = snapshot.findings.get(path).map_or(&[][..], |findings| findings);
    let features = backend.features();
    // Where a finding is now is worked out from this document's text: the world may be an edit behind.
    let here = findings.iter().filter_map(|finding| {
        let whereabouts = finding.whereabouts(&document.text);
        (whereabouts.line == at.position.line + 1).then_some((finding, whereabouts))
    });
    let here: Vec<_> = here.collect();
    let texts = Texts::get(snapshot.language);
    let Some(&(first, whereabouts)) = here.first() else {
        let marks = snapshot.marks.get(path)?.iter();
        return marks.rev().find_map(|mark| of_mark(mark, &document.text, at.position.line, &features, texts));
    };
    let verdicts = here.iter().map(|(finding, _)| &*finding.verdict);
    let contents = if features.hover_markdown {
        let value = verdicts.map(|verdict| markdown::hover(verdict, texts)).collect::<Vec<_>>().join("\n\n---\n\n");
        MarkupContent { kind: MarkupKind::Markdown, value }
    } else {
        let value = verdicts.map(|verdict| diagnostics::plain_hover(verdict, texts)).collect::<Vec<_>>().join("\n\n");
        MarkupContent { kind: MarkupKind::PlainText, value }
    };
    let range = diagnostics::range(first, &document.text, whereabouts, features.encoding());
    Some(Hover { contents: HoverContents::Markup(contents), range: Some(range) })
}

/// The tensors of a call that led to the failure, over its line.
fn of_mark(mark: &Mark, text: &LineIndex, line: u32, features: &Features, texts: &Texts) -> Option<Hover> {
    mark.line_in(text).filter(|now| now - 1 == line)?;
    let Told::Frame(frame) = mark.told else { return None };
    let markdown = markdown::locals(&mark.verdict, frame, texts);
    let contents = if features.hover_markdown {
        MarkupContent { kind: MarkupKind::Markdown, value: markdown }
    } else {
        MarkupContent { kind: MarkupKind::PlainText, value: tensors::plain(&mark.verdict, frame) }
    };
    Some(Hover { contents: HoverContents::Markup(contents), range: None })
}

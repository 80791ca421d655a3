//! `textDocument/inlayHint`: at the ends of the failing lines, the tensors that they name, as they stood at the failure.

use cublame_core::catalog::Texts;
use cublame_core::text::LineIndex;
use tower_lsp::ls_types::{InlayHint, InlayHintLabel, InlayHintParams, InlayHintTooltip, Position};

use super::super::backend::Backend;
use crate::render::tensors;
use crate::world::mark::{Mark, Told};

pub fn inlay_hints(backend: &Backend, params: &InlayHintParams) -> Option<Vec<InlayHint>> {
    let document = backend.documents.get(&params.text_document.uri)?;
    let snapshot = backend.world.snapshot();
    let marks = snapshot.marks.get(document.path.as_ref()?).filter(|_| !snapshot.no_inlay_hints)?;
    let texts = Texts::get(snapshot.language);
    let encoding = backend.features().encoding();
    let lines = params.range.start.line..=params.range.end.line;
    let mut hints: Vec<InlayHint> = Vec::new();
    for mark in marks.iter() {
        let Some(line) = mark.line_in(&document.text).filter(|line| lines.contains(&(line - 1))) else { continue };
        let Some((label, tooltip)) = words(mark, line, &document.text, texts) else { continue };
        let end = document.text.line_range(line).start + document.text.line(line).trim_end().len();
        let end = document.text.position(end, encoding);
        let position = Position::new(end.line, end.character);
        // A recursion has several frames at one line: the deepest is told.
        hints.retain(|hint| hint.position != position);
        hints.push(InlayHint {
            position,
            label: InlayHintLabel::String(label),
            kind: None,
            text_edits: None,
            tooltip: Some(InlayHintTooltip::String(tooltip)),
            padding_left: Some(true),
            padding_right: None,
            data: None,
        });
    }
    Some(hints)
}

/// More than these are cut: an editor shows a hint on one line.
const MOST_TENSORS: usize = 4;

fn words(mark: &Mark, line: u32, text: &LineIndex, texts: &Texts) -> Option<(String, String)> {
    let Told::Frame(frame) = mark.told else { return None };
    let named = tensors::named_on(text.line(line), &mark.verdict, frame);
    let shown = named.iter().take(MOST_TENSORS).map(|tensor| format!("{}: {}", tensor.name, tensors::short(tensor)));
    let mut label = shown.collect::<Vec<_>>().join("; ");
    if named.len() > MOST_TENSORS {
        label.push('…');
    }
    let details = named.iter().map(|tensor| tensors::in_full(tensor));
    let when = texts.line("editor.hint", &[]);
    let tooltip = format!("{when}\n{}", details.collect::<Vec<_>>().join("\n"));
    (!label.is_empty()).then_some((label, tooltip))
}

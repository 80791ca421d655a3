//! Places that a message names itself, nearer to the fault than the call that raised it.

use super::failure::Failure;
use super::place::Judgement;
use super::user_code::Spot;
use crate::parse::{Frame, tensorflow, triton};
use crate::source::Sources;
use crate::verdict::Certainty;

/// Moves the place to where a compiler or a graph says that the fault is. The line that raised it stays a candidate.
pub fn named_in_message(root: &Failure, sources: &Sources, judgement: &mut Judgement) {
    let message = root.headline();
    if let Some(spot) = kernel_line(root, &message, sources) {
        judgement.because.push(("kernel-line", vec![]));
        move_to(&spot, sources, judgement);
    } else if let Some(spot) = tensorflow::definition(&message).map(|frame| Spot::of_text(&frame))
        && spot.is_user(sources)
    {
        judgement.because.push(("defined-at", vec![]));
        move_to(&spot, sources, judgement);
        judgement.certainty = Certainty::Likely;
    }
}

fn move_to(spot: &Spot, sources: &Sources, judgement: &mut Judgement) {
    let place = spot.place(sources);
    let raised_there = judgement.place.as_ref().is_some_and(|old| (&old.file, old.line) == (&place.file, place.line));
    if !raised_there {
        judgement.candidates.extend(judgement.place.replace(place));
        judgement.trusted = false;
    }
}

/// The line that Triton's compiler quotes, where the files of the trace have its text in one place only.
fn kernel_line(root: &Failure, message: &str, sources: &Sources) -> Option<Spot> {
    let excerpt = triton::Excerpt::of(message)?;
    let offset = excerpt.offset()?;
    let mut files: Vec<&str> = root.links.iter().flat_map(|link| &link.spots).map(|spot| spot.file.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    let mut places =
        files.into_iter().filter_map(|file| Some((file, sources.get(file)?))).flat_map(|(file, source)| {
            let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
            let starts: Vec<usize> =
                (0..lines.len()).filter(|start| lines[*start..].starts_with(&excerpt.quoted)).collect();
            starts.into_iter().map(move |start| (file, start))
        });
    let (file, start) = places.next()?;
    if places.next().is_some() {
        return None;
    }
    let line = u32::try_from(start).ok()?.checked_add(1)?.checked_add(offset)?;
    Some(Spot::of_text(&Frame { file: file.to_owned(), line, ..Frame::default() }))
}

//! The code frame of a page, and the single lines of its frames.

use cublame_core::{Place, Verdict};

use super::Page;
use super::html::Html;

/// Lines shown around the culprit.
const CONTEXT: u32 = 4;
/// A reported line this far from the culprit still goes into the same frame.
const NEAR: u32 = 14;

impl Page<'_> {
    /// The culprit with the lines around it, and where the error surfaced.
    pub(super) fn code(&self, verdict: &Verdict) -> Html {
        let mut body = Html::default();
        let Some(place) = verdict.place.as_ref().or(verdict.reported.as_ref()) else { return body };
        let reported = verdict
            .reported
            .as_ref()
            .filter(|it| verdict.place.is_some() && (&it.file, it.line) != (&place.file, place.line));
        let near = reported.filter(|it| it.file == place.file && it.line.abs_diff(place.line) <= NEAR);
        body.append(self.excerpt(place, near, verdict));
        if let Some(far) = reported.filter(|_| near.is_none()) {
            body.inside("<h3>", &self.say("surfaced"), "</h3>").append(self.excerpt_of_reported(far));
        }
        if !verdict.candidates.is_empty() {
            body.inside("<h3>", &self.say("candidates"), "</h3><ul class=\"plain\">");
            for candidate in &verdict.candidates {
                body.markup("<li>").append(self.place(candidate));
                if let Some(line) = self.told.line(&candidate.file, candidate.line) {
                    body.markup(" ").code(line.trim());
                }
                body.markup("</li>");
            }
            body.markup("</ul>");
        }
        self.section("code", body)
    }

    fn excerpt(&self, place: &Place, reported: Option<&Place>, verdict: &Verdict) -> Html {
        let mut html = Html::default();
        html.append(self.file(place));
        let (first, last) = match reported {
            Some(reported) => (place.line.min(reported.line), place.line.max(reported.line)),
            None => (place.line, place.line),
        };
        let note = self.say(&format!("here.{}", verdict.certainty.name()));
        let notes = [(place.line, note), (reported.map_or(0, |it| it.line), self.say("surfaced-here"))];
        html.append(self.rows(place, first.saturating_sub(CONTEXT).max(1), last.saturating_add(CONTEXT), &notes));
        html
    }

    fn excerpt_of_reported(&self, place: &Place) -> Html {
        let mut html = Html::default();
        html.append(self.file(place));
        let unmarked = Place { column: None, end_column: None, ..place.clone() };
        let notes = [(0, String::new()), (place.line, self.say("surfaced-here"))];
        html.append(self.rows(&unmarked, place.line.saturating_sub(1).max(1), place.line.saturating_add(1), &notes));
        html
    }

    /// Numbered lines; `notes` are the culprit's and the reported one's. Without the source there is what the hook kept.
    fn rows(&self, place: &Place, first: u32, last: u32, notes: &[(u32, String); 2]) -> Html {
        let mut html = Html::default();
        let kept: Vec<(u32, String)> = (first..=last)
            .filter_map(|number| Some((number, self.told.line(&place.file, number)?.to_owned())))
            .collect();
        if !kept.iter().any(|(number, _)| *number == place.line) {
            return html;
        }
        html.markup("<pre class=\"source\">");
        for (number, line) in &kept {
            let [(culprit, why), (surfaced, how)] = notes;
            let (class, note) = match number {
                number if number == culprit => ("<span class=\"row culprit\">", Some(why)),
                number if number == surfaced => ("<span class=\"row reported\">", Some(how)),
                _ => ("<span class=\"row\">", None),
            };
            html.markup(class).inside("<span class=\"no\">", &number.to_string(), "</span>");
            match marked(line, place).filter(|_| *number == *culprit) {
                Some((before, marked, after)) => html.text(before).inside("<mark>", marked, "</mark>").text(after),
                None => html.text(line),
            };
            if let Some(note) = note {
                html.inside("<span class=\"note\">", note, "</span>");
            }
            html.markup("\n</span>");
        }
        html.markup("</pre>");
        html
    }

    /// A place, and where its file lies when the name alone does not tell.
    pub(super) fn file(&self, place: &Place) -> Html {
        let mut html = Html::default();
        html.markup("<p class=\"file\"><span>").append(self.place(place)).markup("</span><span class=\"soft\">");
        html.text(Some(self.shortened(&place.file)).filter(|path| path.contains(['/', '\\'])).unwrap_or_default());
        html.markup("</span></p>");
        html
    }

    /// A path without the run's folder, which is told once.
    pub(super) fn shortened<'p>(&self, path: &'p str) -> &'p str {
        let cwd = self.told.run.as_ref().map_or("", |run| run.cwd.as_str());
        let inside = path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/'));
        inside.filter(|_| !cwd.is_empty()).unwrap_or(path)
    }

    /// `train.py:8 in forward`
    pub(super) fn place(&self, place: &Place) -> Html {
        let mut html = Html::default();
        let name = place.file.rsplit(['/', '\\']).next().unwrap_or(&place.file);
        html.code(&format!("{name}:{}", place.line));
        if let Some(function) = &place.function {
            html.markup(" ").text(&self.say("in")).markup(" ").code(function);
        }
        html
    }
}

/// A line before, within and after the columns of a place, which count code points from 1.
fn marked<'a>(line: &'a str, place: &Place) -> Option<(&'a str, &'a str, &'a str)> {
    let byte = |column: u32| {
        let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
        ends.take(column as usize).last()
    };
    let (start, end) = (byte(place.column?)?, byte(place.end_column?)?);
    (start < end).then(|| (&line[..start], &line[start..end], &line[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_code_points_from_one() {
        let place = |column, end_column| Place {
            file: String::new(),
            path: None,
            line: 1,
            column: Some(column),
            end_column: Some(end_column),
            function: None,
        };
        assert_eq!(marked("ä = f(x)", &place(5, 9)), Some(("ä = ", "f(x)", "")));
        assert_eq!(marked("ä = f(x)", &place(5, 900)), Some(("ä = ", "f(x)", "")));
        assert_eq!(marked("ä = f(x)", &place(0, 0)), None);
        assert_eq!(marked("", &place(3, 9)), None);
    }
}

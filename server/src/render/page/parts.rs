//! The sections of a page, in the order in which they are read.

use std::collections::BTreeMap;

use cublame_core::advice::size;
use cublame_core::event::What;
use cublame_core::evidence::ProcessEvents;
use cublame_core::verdict::{Frame, OtherProcess};
use cublame_core::{Place, Verdict};

use super::super::tensors;
use super::Page;
use super::html::Html;
use super::plot::duration;

impl Page<'_> {
    pub(super) fn brand(&self) -> Html {
        let mut html = Html::default();
        html.markup("<p class=\"brand\"><b>cu<em>BLAME</em></b><span>").text(&self.when()).markup("</span></p>");
        html
    }

    /// What failed, where, how sure that is, and the run in a few words.
    pub(super) fn lead(&self) -> Html {
        let mut html = Html::default();
        html.markup(match self.root() {
            Some(_) => "<header class=\"lead\">",
            None => "<header class=\"lead fine\">",
        });
        match self.root() {
            Some(root) => {
                html.inside(
                    "<div class=\"chips\"><span class=\"chip kind\">",
                    &root.kind,
                    "</span><span class=\"chip ",
                );
                html.markup(root.certainty.name()).markup("\">");
                html.text(&self.say(&format!("certainty.{}", root.certainty.name()))).markup("</span>");
                if let Some(rank) = root.rank {
                    let rank = self.say_with("rank-chip", &[("rank", &rank.to_string())]);
                    html.inside("<span class=\"chip\">", &rank, "</span>");
                }
                if !root.fatal {
                    html.inside("<span class=\"chip\">", &self.say("survived"), "</span>");
                }
                html.markup("</div>").inside("<h1>", &sentence(&root.summary), "</h1>");
                if let Some(place) = &root.place {
                    html.markup("<p class=\"place\">").append(self.place(place)).markup("</p>");
                }
                html.inside("<p class=\"soft\">", &self.say(&format!("means.{}", root.certainty.name())), "</p>");
                if let Some(error) = &root.error {
                    let code = error.code.map(|code| format!(" ({code})")).unwrap_or_default();
                    html.markup("<p>")
                        .code(&format!("{}{code}", error.name))
                        .markup(" ")
                        .text(&error.text)
                        .markup("</p>");
                }
            }
            None => {
                html.inside("<h1>", &self.say(self.without_verdict()), "</h1>");
            }
        }
        html.append(self.facts()).markup("</header>");
        html
    }

    fn without_verdict(&self) -> &'static str {
        use crate::session::State;
        match self.told.state {
            Some(State::Live) => "still-running",
            Some(State::Interrupted) => "interrupted",
            _ => "no-failure",
        }
    }

    fn facts(&self) -> Html {
        let mut html = Html::default();
        let Some(run) = &self.told.run else { return html };
        let lasted = self.told.finished.map(|finished| duration(finished - run.started));
        let exit = self.told.exit.and_then(|exit| match (exit.code, exit.signal) {
            (_, Some(signal)) => Some(self.say_with("exit-signal", &[("signal", &signal.to_string())])),
            (Some(code), None) => Some(code.to_string()),
            (None, None) => None,
        });
        html.markup("<dl class=\"facts\">");
        for (key, value) in [
            ("mode", Some(run.mode.to_string())),
            ("machine", Some(run.host.clone())),
            ("duration", lasted),
            ("exit", exit),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                html.inside("<div><dt>", &self.say(key), "</dt>").inside("<dd>", &value, "</dd></div>");
            }
        }
        if !run.argv.is_empty() {
            html.inside("<div class=\"wide\"><dt>", &self.say("command"), "</dt><dd>");
            html.code(&run.argv.join(" ")).markup("</dd></div>");
        }
        html.markup("</dl>");
        html
    }

    pub(super) fn reasons(&self, verdict: &Verdict) -> Html {
        let mut body = Html::default();
        list(&mut body, &verdict.because);
        if !verdict.missing.is_empty() {
            body.inside("<h3>", &self.say("missing"), "</h3>");
            list(&mut body, &verdict.missing);
        }
        self.section("because", body)
    }

    pub(super) fn advice(&self, verdict: &Verdict) -> Html {
        let mut body = Html::default();
        if !verdict.advice.is_empty() {
            body.markup("<ol class=\"steps\">");
            for advice in &verdict.advice {
                body.markup("<li><b>").prose(&advice.title).markup("</b>").prose(&advice.detail);
                if let Some(command) = &advice.command {
                    body.inside("<pre class=\"command\">", command, "</pre>");
                }
                if let Some(edit) = &advice.edit {
                    body.inside("<pre class=\"command\">", edit, "</pre>");
                }
                body.markup("</li>");
            }
            body.markup("</ol>");
        }
        self.section("advice", body)
    }

    pub(super) fn asserts(&self, verdict: &Verdict) -> Html {
        let mut body = Html::default();
        if !verdict.asserts.is_empty() {
            body.markup("<ul class=\"plain\">");
            for it in &verdict.asserts {
                let name = it.file.rsplit(['/', '\\']).next().unwrap_or(&it.file);
                body.markup("<li>").code(&it.condition).markup("<br><span class=\"soft\">");
                if let Some(kernel) = &it.kernel {
                    body.text(kernel).markup(" · ");
                }
                body.text(&format!("{name}:{}", it.line)).markup(" · ");
                body.text(&self.say_with("times", &[("count", &it.count.to_string())])).markup("</span></li>");
            }
            body.markup("</ul>");
        }
        self.section("asserts", body)
    }

    /// What the message of an out-of-memory failure said, as a bar of the GPU's memory.
    pub(super) fn memory(&self, verdict: &Verdict) -> Html {
        let mut body = Html::default();
        let Some(memory) = &verdict.memory else { return body };
        // The failing process is in the list of all, too.
        let others: Vec<&OtherProcess> =
            memory.others.iter().filter(|other| Some(other.bytes) != memory.process).collect();
        let by_others: u64 = others.iter().map(|other| other.bytes).fold(0, u64::saturating_add);
        let parts = [
            ("used", "<i class=\"used\"></i>", "allocated", memory.allocated),
            ("cached", "<i class=\"cached\"></i>", "reserved", memory.reserved_unallocated),
            ("other", "<i class=\"other\"></i>", "others", (by_others > 0).then_some(by_others)),
            ("free", "<i class=\"free\"></i>", "free", memory.free),
        ];
        if let Some(capacity) = memory.capacity.filter(|capacity| *capacity > 0) {
            body.markup(
                "<svg class=\"bar\" viewBox=\"0 0 1000 26\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
            );
            body.text(&self.say("memory")).markup("\"><rect class=\"free\" width=\"1000\" height=\"26\"/>");
            let mut from = 0.0;
            for (class, _, _, bytes) in parts {
                let width = bytes.unwrap_or(0) as f64 / capacity as f64 * 1000.0;
                body.markup("<rect class=\"").markup(class).markup("\" x=\"").number(from);
                body.markup("\" width=\"").number(width.min(1000.0 - from)).markup("\" height=\"26\"/>");
                from = (from + width).min(1000.0);
            }
            body.markup("</svg>");
        }
        body.markup("<ul class=\"key\">");
        let whole = [("", "", "requested", memory.requested), ("", "", "capacity", memory.capacity)];
        for (_, mark, key, bytes) in whole.into_iter().chain(parts) {
            if let Some(bytes) = bytes {
                body.markup("<li>").markup(mark).text(&self.say(&format!("bytes.{key}"))).markup(" <b>");
                body.text(&size(bytes)).markup("</b></li>");
            }
        }
        for other in others {
            let pid = self.say_with("process", &[("pid", &other.pid.to_string())]);
            body.markup("<li>").text(&pid).markup(" <b>").text(&size(other.bytes)).markup("</b></li>");
        }
        body.markup("</ul>");
        self.section("memory", body)
    }

    /// The call chain, the user's own frames in full with their tensors, those of libraries folded.
    pub(super) fn frames(&self, verdict: &Verdict) -> Html {
        let mut body = Html::default();
        let mut folded: Vec<&Frame> = Vec::new();
        for (number, frame) in verdict.frames.iter().enumerate() {
            if !frame.user {
                folded.push(frame);
                continue;
            }
            self.fold(&mut body, &mut folded);
            body.markup("<div class=\"frame\">").append(self.file(&place_of(frame)));
            if let Some(line) = self.told.line(&frame.file, frame.line) {
                body.markup("<pre class=\"source\"><span class=\"row\">");
                body.inside("<span class=\"no\">", &frame.line.to_string(), "</span>").text(line.trim());
                body.markup("\n</span></pre>");
            }
            self.tensors(&mut body, verdict, number);
            body.markup("</div>");
        }
        self.fold(&mut body, &mut folded);
        if let Some(exception) = &verdict.exception {
            body.markup("<details class=\"frame\" open><summary>").text(&exception.type_name).markup("</summary>");
            body.inside("<pre class=\"log\">", &exception.message, "</pre></details>");
        }
        self.section("frames", body)
    }

    fn fold(&self, body: &mut Html, folded: &mut Vec<&Frame>) {
        if folded.is_empty() {
            return;
        }
        let count = self.say_with("library-frames", &[("count", &folded.len().to_string())]);
        body.inside("<details class=\"frame\"><summary>", &count, "</summary><ul class=\"plain\">");
        for frame in folded.drain(..) {
            body.markup("<li>").append(self.place(&place_of(frame))).markup(" ");
            body.inside("<span class=\"soft\">", self.shortened(&frame.file), "</span></li>");
        }
        body.markup("</ul></details>");
    }

    fn tensors(&self, body: &mut Html, verdict: &Verdict, frame: usize) {
        let mut of_frame = verdict.tensors.iter().filter(|tensor| tensor.frame == frame).peekable();
        if of_frame.peek().is_some() {
            self.table(body, &["tensor", "shape", "dtype", "device", "#bytes", "remarks"]);
            for tensor in of_frame {
                let shape = tensor.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
                body.markup("<tr><td>").code(&tensor.name).markup("</td>");
                for cell in [&shape, &tensor.dtype, &tensor.device] {
                    body.inside("<td>", cell, "</td>");
                }
                let bytes = tensor.bytes.map(size).unwrap_or_default();
                body.inside("<td class=\"number\">", &bytes, "</td>");
                body.inside("<td>", &tensors::remarks(tensor).join(", "), "</td></tr>");
            }
            body.markup("</table></div>");
        }
        let mut objects = verdict.objects.iter().filter(|object| object.frame == frame).peekable();
        if objects.peek().is_some() {
            body.markup("<ul class=\"plain\">");
            for object in objects {
                body.markup("<li>").code(&object.name).markup(" ").text(&object.class);
                if let Some(length) = object.length {
                    body.text(&format!(" · {length}"));
                }
                body.markup("</li>");
            }
            body.markup("</ul>");
        }
    }

    /// What each rank did, where there are several; the one that failed first is marked.
    pub(super) fn ranks(&self) -> Html {
        let mut body = Html::default();
        let ranks: BTreeMap<u32, &ProcessEvents> =
            self.told.evidence.processes.iter().filter_map(|process| Some((process.rank()?, process))).collect();
        let root = self.root();
        if ranks.len() > 1 {
            self.table(&mut body, &["rank", "pid", "ended"]);
            for (rank, process) in ranks {
                let is_root = root.is_some_and(|root| root.rank == Some(rank));
                body.markup(if is_root { "<tr class=\"root\"><td>" } else { "<tr><td>" }).text(&rank.to_string());
                body.markup("</td><td class=\"short\">").text(&process.pid.to_string()).markup("</td><td>");
                body.text(&self.end_of(process)).markup("</td></tr>");
            }
            body.markup("</table></div>");
        }
        let followed = root.map_or(&[][..], |root| &root.collateral);
        if !followed.is_empty() {
            body.inside("<h3>", &self.say("followed"), "</h3><ul class=\"plain\">");
            for it in followed {
                body.markup("<li>");
                if let Some(rank) = it.rank {
                    body.text(&self.say_with("rank-chip", &[("rank", &rank.to_string())])).markup(": ");
                }
                body.text(&it.summary).markup("</li>");
            }
            body.markup("</ul>");
        }
        self.section("ranks", body)
    }

    fn end_of(&self, process: &ProcessEvents) -> String {
        let exception = process.events.iter().rev().find_map(|event| match &event.what {
            What::Exception(exception) => exception.chain.last(),
            _ => None,
        });
        match exception {
            Some(link) => format!("{}: {}", link.type_name, link.message.lines().next().unwrap_or_default()),
            None if process.events.iter().any(|event| matches!(event.what, What::Exit(_))) => self.say("ended-orderly"),
            None => self.say("ended-unseen"),
        }
    }

    /// The failures beside the root cause, each folded.
    pub(super) fn others(&self) -> Html {
        let mut html = Html::default();
        for verdict in self.told.verdicts.iter().skip(1) {
            html.markup("<section><details class=\"more\"><summary>").text(&self.say("also")).markup(" ");
            html.text(&verdict.summary).markup(" <span class=\"chip ").markup(verdict.certainty.name()).markup("\">");
            html.text(&self.say(&format!("certainty.{}", verdict.certainty.name()))).markup("</span></summary>");
            html.append(self.verdict(verdict)).markup("</details></section>");
        }
        html
    }

    pub(super) fn log(&self) -> Html {
        /// The end of the log is what one scrolls to.
        const LINES: usize = 400;
        let mut body = Html::default();
        let Some(log) = self.told.evidence.log.as_ref().filter(|log| !log.lines.is_empty()) else { return body };
        let shown = &log.lines[log.lines.len().saturating_sub(LINES)..];
        let (shown_count, total) = (shown.len().to_string(), log.total_lines.to_string());
        let summary = if shown_count == total {
            self.say_with("log-whole", &[("total", &total)])
        } else {
            self.say_with("log-lines", &[("shown", &shown_count), ("total", &total)])
        };
        body.inside("<details><summary>", &summary, "</summary><pre class=\"log\">");
        for line in shown {
            body.text(&line.text);
            if line.repeats > 1 {
                body.text(&format!("  × {}", line.repeats));
            }
            body.markup("\n");
        }
        body.markup("</pre></details>");
        self.section("log", body)
    }

    pub(super) fn environment(&self) -> Html {
        let mut body = Html::default();
        let Some(run) = &self.told.run else { return body };
        let start = self.told.evidence.processes.iter().flat_map(|process| &process.events).find_map(|event| {
            match &event.what {
                What::Start(start) => Some(start),
                _ => None,
            }
        });
        let python = start.map(|start| format!("{} ({})", start.python, start.executable));
        let own = [("folder", Some(run.cwd.clone())), ("python", python), ("run", Some(run.id.clone()))];
        self.table(&mut body, &["name", "value"]);
        for (key, value) in own {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                body.inside("<tr><td>", &self.say(key), "</td><td>").text(&value).markup("</td></tr>");
            }
        }
        for (name, value) in &run.env {
            body.markup("<tr><td>").code(name).markup("</td><td>").text(value).markup("</td></tr>");
        }
        body.markup("</table></div>");
        if !self.told.partial.is_empty() {
            body.inside("<h3>", &self.say("partial"), "</h3>");
            list(&mut body, &self.told.partial);
        }
        self.section("environment", body)
    }

    pub(super) fn foot(&self) -> Html {
        let mut html = Html::default();
        let values = [("version", crate::VERSION)];
        html.inside("<footer>", &self.say_with("foot", &values), "</footer>");
        html
    }

    fn when(&self) -> String {
        let started = self.told.run.as_ref().map_or(0.0, |run| run.started);
        let Ok(time) = time::OffsetDateTime::from_unix_timestamp(started as i64) else { return String::new() };
        let (date, clock) = (time.date(), time.time());
        let month = u8::from(date.month());
        format!(
            "{:04}-{month:02}-{:02} {:02}:{:02}:{:02} UTC",
            date.year(),
            date.day(),
            clock.hour(),
            clock.minute(),
            clock.second()
        )
    }

    /// Opens a table; a heading with `#` is over numbers.
    pub(super) fn table(&self, body: &mut Html, headings: &[&str]) {
        body.markup("<div class=\"scroll\"><table><tr>");
        for heading in headings {
            match heading.strip_prefix('#') {
                Some(heading) => body.inside("<th class=\"number\">", &self.say(&format!("column.{heading}")), "</th>"),
                None => body.inside("<th>", &self.say(&format!("column.{heading}")), "</th>"),
            };
        }
        body.markup("</tr>");
    }
}

fn list(html: &mut Html, items: &[String]) {
    if !items.is_empty() {
        html.markup("<ul class=\"reasons\">");
        for item in items {
            html.markup("<li>").prose(item).markup("</li>");
        }
        html.markup("</ul>");
    }
}

fn place_of(frame: &Frame) -> Place {
    Place {
        file: frame.file.clone(),
        path: frame.path.clone(),
        line: frame.line,
        column: frame.column,
        end_column: frame.end_column,
        function: frame.function.clone(),
    }
}

/// With a capital letter, as a heading has.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

//! A quantity over the time of a run, as an inline SVG with its labels around it in HTML, so that they keep their size.

use super::html::Html;

/// One quantity of one device.
pub struct Plot<'a> {
    pub title: &'a str,
    /// Seconds since the start of the run, and the value.
    pub points: &'a [(f64, f64)],
    /// The most that it can be: the memory of the GPU, or 100 %.
    pub full: Option<f64>,
    /// What the unit's round numbers are made of: 2^30 for bytes that are shown as GiB.
    pub grain: f64,
    /// Seconds at which the failure was seen.
    pub failure: Option<f64>,
    pub failure_word: &'a str,
    pub unit: fn(f64) -> String,
}

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 220.0;
/// More points than pixels say nothing more.
const MOST: usize = 1000;

/// Nothing where there are not two points to join.
pub fn plot(html: &mut Html, plot: &Plot) {
    let points: Vec<(f64, f64)> =
        plot.points.iter().copied().filter(|(time, value)| time.is_finite() && value.is_finite()).collect();
    let (Some(&(first, _)), Some(&(last, latest))) = (points.first(), points.last()) else { return };
    let (start, end) = (first.min(plot.failure.unwrap_or(first)), last.max(plot.failure.unwrap_or(last)));
    let peak = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let full = plot.full.filter(|full| full.is_finite() && *full >= peak && *full > 0.0);
    // A curve that would lie on the ground is worth its own scale.
    let top = full.filter(|full| peak > full / 3.0).unwrap_or_else(|| round_up(peak / plot.grain) * plot.grain);
    if end <= start || points.len() < 2 {
        return;
    }
    let x = |time: f64| (time - start) / (end - start) * WIDTH;
    let y = |value: f64| HEIGHT - value.clamp(0.0, top) / top * HEIGHT;

    html.markup("<figure class=\"plot\"><figcaption>").inside("<b>", plot.title, "</b>");
    html.markup("<span>").text(&(plot.unit)(latest));
    if let Some(full) = full.filter(|full| *full > top) {
        html.markup(" / ").text(&(plot.unit)(full));
    }
    html.markup("</span></figcaption><div class=\"axes\"><div class=\"y\">");
    for part in [1.0, 0.5, 0.0] {
        html.inside("<span>", &(plot.unit)(top * part), "</span>");
    }
    html.markup("</div><svg viewBox=\"0 0 1000 220\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
    html.text(plot.title).markup("\"><path class=\"grid\" d=\"M0 0H1000M0 110H1000M0 220H1000\"/>");
    let thin = thinned(&points);
    html.markup("<path class=\"area\" d=\"M").number(x(first)).markup(" 220");
    line(html, &thin, "L", x, y);
    html.markup("L").number(x(last)).markup(" 220Z\"/><path class=\"line\" d=\"");
    line(html, &thin, "M", x, y);
    html.markup("\"/>");
    if let Some(failure) = plot.failure.filter(|time| time.is_finite()) {
        html.markup("<path class=\"failure\" d=\"M").number(x(failure).clamp(1.0, WIDTH - 1.0)).markup(" 0V220\"/>");
    }
    html.markup("</svg><div class=\"x\">");
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        html.inside("<span>", &time(start + (end - start) * part, end - start), "</span>");
    }
    html.markup("</div></div>");
    if let Some(failure) = plot.failure {
        html.markup("<p class=\"legend\"><i></i>")
            .text(plot.failure_word)
            .markup(" ")
            .text(&time(failure, end - start))
            .markup("</p>");
    }
    html.markup("</figure>");
}

fn line(html: &mut Html, points: &[(f64, f64)], first: &'static str, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
    for (number, (time, value)) in points.iter().enumerate() {
        html.markup(if number == 0 { first } else { "L" }).number(x(*time)).markup(" ").number(y(*value));
    }
}

/// At most [`MOST`] points, of each stretch the highest: a peak is what one looks for.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let stretch = points.len().div_ceil(MOST);
    let highest = |part: &[(f64, f64)]| part.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    points.chunks(stretch.max(1)).filter_map(highest).collect()
}

/// The next of 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

/// A moment of a plot that spans so many seconds.
fn time(seconds: f64, span: f64) -> String {
    if span < 20.0 { format!("{seconds:.1} s") } else { clock(seconds) }
}

/// How long something took: `4.8 s`, `12:30`.
pub fn duration(seconds: f64) -> String {
    if seconds < 60.0 { format!("{:.1} s", seconds.max(0.0)) } else { clock(seconds) }
}

/// `0:07`, `12:30`, `2:03:00`
fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, top) in [(0.0, 1.0), (3.0, 5.0), (10.0, 10.0), (17.0, 20.0), (0.04, 0.05)] {
            assert!((round_up(value) - top).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_peak_survives_the_thinning() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), 1.0)).collect();
        points[54_321].1 = 9.0;
        let thin = thinned(&points);
        assert!(thin.len() <= MOST && thin.iter().any(|point| point.1 > 8.0));
    }

    #[test]
    fn absurd_points_draw_nothing() {
        for points in [&[][..], &[(1.0, 1.0)], &[(f64::NAN, 1.0), (2.0, f64::INFINITY)], &[(3.0, 1.0), (3.0, 2.0)]] {
            let mut html = Html::default();
            let failure = None;
            plot(
                &mut html,
                &Plot {
                    title: "x",
                    points,
                    full: None,
                    grain: 1.0,
                    failure,
                    failure_word: "",
                    unit: |_| String::new(),
                },
            );
            assert!(html.is_empty(), "{points:?}");
        }
    }

    #[test]
    fn times_read_as_on_a_clock() {
        assert_eq!([7.2, 750.0, 7380.0].map(clock), ["0:07", "12:30", "2:03:00"]);
    }
}

//! Does a series of memory sizes rise until it is full, or only go up and down with the work?

/// A rise that went on to the end of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rise {
    pub bytes_per_second: f64,
    /// How long it was watched.
    pub seconds: f64,
}

/// The steady rise at the end of a series of (Unix seconds, bytes), if it is one.
///
/// A program fills its memory once, while it warms up, and then every step takes some and gives it back. So the first part
/// is passed over, and what must rise is the least that each of several equal times held: a peak of one step is none.
/// A rise that is small beside what is held anyway would not have ended the program.
pub fn rise(series: &[(f64, u64)]) -> Option<Rise> {
    const WARM_UP: f64 = 0.25;
    const PARTS: usize = 6;
    const FEWEST: usize = 4 * PARTS;
    const SHORTEST: f64 = 4.0;
    const LEAST: f64 = 0.1;

    let (first, last) = (series.first()?.0, series.last()?.0);
    let start = first + (last - first) * WARM_UP;
    let watched: Vec<(f64, u64)> = series.iter().copied().filter(|(time, _)| *time >= start).collect();
    let seconds = last - start;
    if watched.len() < FEWEST || seconds < SHORTEST {
        return None;
    }
    let part = |time: f64| (((time - start) / seconds * PARTS as f64) as usize).min(PARTS - 1);
    let mut troughs = [None::<u64>; PARTS];
    for (time, bytes) in &watched {
        let trough = &mut troughs[part(*time)];
        *trough = Some(trough.map_or(*bytes, |least| least.min(*bytes)));
    }
    let troughs: Vec<u64> = troughs.into_iter().collect::<Option<_>>()?;
    let rises = troughs.windows(2).all(|pair| pair[1] > pair[0]);
    let (low, high) = (*troughs.first()? as f64, *troughs.last()? as f64);
    // Between the starts of the first and the last part.
    let between = seconds * (PARTS - 1) as f64 / PARTS as f64;
    (rises && high - low >= LEAST * high).then(|| Rise { bytes_per_second: (high - low) / between, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Two samples a second for this long, from a rule of the seconds.
    fn series(seconds: u32, bytes: impl Fn(f64) -> f64) -> Vec<(f64, u64)> {
        (0..seconds * 2)
            .map(|at| f64::from(at) / 2.0)
            .map(|time| (1e9 + time, (bytes(time) * MIB as f64) as u64))
            .collect()
    }

    /// The rise in MiB a second.
    fn found(series: &[(f64, u64)]) -> Option<u32> {
        rise(series).map(|rise| (rise.bytes_per_second / MIB as f64).round() as u32)
    }

    #[test]
    fn a_list_that_keeps_every_step_rises() {
        assert_eq!(found(&series(60, |time| 500.0 + 20.0 * time)), Some(20));
    }

    #[test]
    fn a_leak_under_the_peaks_of_the_steps_rises() {
        let steps = |time: f64| if ((time * 2.0) as u64).is_multiple_of(3) { 4000.0 } else { 0.0 };
        assert_eq!(found(&series(120, |time| 1000.0 + 10.0 * time + steps(time))), Some(10));
    }

    #[test]
    fn what_fills_up_once_and_stays_does_not() {
        assert_eq!(found(&series(60, |time| (200.0 * time).min(2000.0))), None);
        assert_eq!(found(&series(60, |_| 5000.0)), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn steps_that_give_back_what_they_take_do_not() {
        assert_eq!(found(&series(60, |time| 1000.0 + 3000.0 * (time * 1.3).sin().abs())), None);
        assert_eq!(found(&series(60, |time| 3000.0 - 20.0 * time)), None);
    }

    #[test]
    fn a_rise_that_is_too_short_or_too_small_says_nothing() {
        assert_eq!(found(&series(3, |time| 500.0 * time)), None);
        assert_eq!(found(&series(60, |time| 30000.0 + time)), None);
    }

    /// A longer sequence once in a while takes more, and its memory stays reserved: steps, not a rise.
    #[test]
    fn stairs_are_no_rise() {
        assert_eq!(found(&series(60, |time| 1000.0 * (1.0 + (time / 25.0).floor()))), None);
    }

    #[test]
    fn odd_times_are_borne() {
        let mut odd = series(60, |time| time);
        odd.reverse();
        assert_eq!(found(&odd), None);
        assert_eq!(found(&[(f64::NAN, 1), (0.0, 2)]), None);
        assert_eq!(found(&vec![(5.0, 1); 100]), None);
    }
}

//! Stop strings: text is held back while it may still turn into one.

/// Watches a stream of text for stop strings.
#[derive(Debug)]
pub struct StopWatch {
    stops: Vec<String>,
    /// Text not yet let through.
    held: String,
}

impl StopWatch {
    /// Watches for any of `stops`; empty ones are ignored.
    pub fn new(stops: &[String]) -> StopWatch {
        StopWatch {
            stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(),
            held: String::new(),
        }
    }

    /// Takes the next piece; appends to `out` what can be shown. Returns the stop string when one came up: what stands
    /// before it has been let through, and the rest is dropped.
    pub fn push(&mut self, piece: &str, out: &mut String) -> Option<&str> {
        self.held.push_str(piece);
        let first = self
            .stops
            .iter()
            .enumerate()
            .filter_map(|(i, stop)| Some((self.held.find(stop.as_str())?, i)))
            .min();
        if let Some((at, i)) = first {
            out.push_str(&self.held[..at]);
            self.held.clear();
            return Some(&self.stops[i]);
        }
        let keep = self
            .stops
            .iter()
            .map(|stop| overlap(&self.held, stop))
            .max()
            .unwrap_or(0);
        out.push_str(&self.held[..self.held.len() - keep]);
        self.held.drain(..self.held.len() - keep);
        None
    }

    /// The end of the text: lets through what was held.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }
}

/// Length of the longest end of `text` that is a proper beginning of `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    (1..stop.len().min(text.len() + 1))
        .rev()
        .find(|&len| stop.is_char_boundary(len) && text.ends_with(&stop[..len]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut watch = StopWatch::new(&stops);
        let mut out = String::new();
        for piece in pieces {
            if let Some(stop) = watch.push(piece, &mut out) {
                let stop = stop.to_owned();
                return (out, Some(stop));
            }
        }
        watch.finish(&mut out);
        (out, None)
    }

    #[test]
    fn text_without_stops_passes_at_once() {
        let mut watch = StopWatch::new(&[]);
        let mut out = String::new();
        assert_eq!(watch.push("héllo", &mut out), None);
        assert_eq!(out, "héllo");
    }

    #[test]
    fn a_stop_string_across_pieces_is_found_and_not_shown() {
        assert_eq!(
            run(&["END"], &["abc E", "N", "D def"]),
            ("abc ".into(), Some("END".into()))
        );
        assert_eq!(
            run(&["\n\n"], &["a\n", "b\n", "\nc"]),
            ("a\nb".into(), Some("\n\n".into()))
        );
        assert_eq!(
            run(&["。終"], &["はい。", "終わり"]),
            ("はい".into(), Some("。終".into()))
        );
    }

    #[test]
    fn the_earliest_stop_wins_and_a_near_miss_is_shown() {
        assert_eq!(run(&["def", "bc"], &["abcdef"]), ("a".into(), Some("bc".into())));
        assert_eq!(run(&["END"], &["an EN", "VOY"]), ("an ENVOY".into(), None));
        assert_eq!(run(&["aab"], &["aa", "ab"]), ("a".into(), Some("aab".into())));
        assert_eq!(run(&["", "END"], &["x EN"]), ("x EN".into(), None));
    }
}

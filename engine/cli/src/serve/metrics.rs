//! The figures of `GET /metrics`, in Prometheus' text format. They come from the engine's snapshot, but for two
//! histograms that only those who hand in requests can fill.

use std::fmt::{Display, Write};
use std::sync::{Mutex, PoisonError};

use reprise_engine::Answer;
use reprise_engine::snapshot::Snapshot;

use super::state::phases;

/// What the text is.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const FIRST_TOKEN_SECONDS: &[f64] = &[
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
const TOKENS_PER_SECOND: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 200.0, 500.0];

/// Values by size.
#[derive(Debug)]
struct Histogram {
    bounds: &'static [f64],
    counts: Mutex<(Vec<u64>, f64)>,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Histogram {
        Histogram {
            bounds,
            counts: Mutex::new((vec![0; bounds.len() + 1], 0.0)),
        }
    }

    fn add(&self, value: f64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = self.bounds.partition_point(|&bound| bound < value);
        counts.0[bucket] += 1;
        counts.1 += value;
    }

    fn write(&self, out: &mut Page, name: &str, help: &str) {
        out.about(name, help, "histogram");
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total = 0;
        for (index, count) in counts.0.iter().enumerate() {
            total += count;
            let bound = self.bounds.get(index).map_or("+Inf".to_owned(), f64::to_string);
            out.line(&format!("{name}_bucket{{le=\"{bound}\"}}"), total);
        }
        out.line(&format!("{name}_sum"), counts.1);
        out.line(&format!("{name}_count"), total);
    }
}

/// What is measured of answers.
#[derive(Debug)]
pub struct Meters {
    first_token: Histogram,
    speed: Histogram,
}

impl Default for Meters {
    fn default() -> Meters {
        Meters {
            first_token: Histogram::new(FIRST_TOKEN_SECONDS),
            speed: Histogram::new(TOKENS_PER_SECOND),
        }
    }
}

impl Meters {
    /// Counts an answer in. One that ended before its first token has no time to it.
    pub fn answered(&self, answer: &Answer) {
        if answer.answer_tokens == 0 {
            return;
        }
        self.first_token.add(answer.time_to_first_token.as_secs_f64());
        let seconds = answer.decode_time.as_secs_f64();
        if answer.answer_tokens > 1 && seconds > 0.0 {
            self.speed.add((answer.answer_tokens - 1) as f64 / seconds);
        }
    }
}

/// A page being written.
#[derive(Default)]
struct Page(String);

impl Page {
    fn about(&mut self, name: &str, help: &str, kind: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.about(name, help, kind);
        self.line(name, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.one(name, "counter", help, value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.one(name, "gauge", help, value);
    }

    fn labelled(&mut self, name: &str, help: &str, label: &str, values: &[(&str, usize)]) {
        self.about(name, help, "gauge");
        for (key, value) in values {
            self.line(&format!("{name}{{{label}=\"{key}\"}}"), value);
        }
    }
}

/// A label's value, with what the format wants escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The whole page.
pub fn page(model: &str, snapshot: &Snapshot, meters: &Meters) -> String {
    let mut page = Page::default();
    let Snapshot {
        pool,
        memory,
        totals,
        speculation,
        ..
    } = snapshot;
    page.about("reprise_build_info", "The server and its model.", "gauge");
    page.line(
        &format!(
            "reprise_build_info{{version=\"{}\",model=\"{}\",backend=\"{}\",kv_format=\"{}\"}}",
            env!("CARGO_PKG_VERSION"),
            escaped(model),
            escaped(&snapshot.model.backend),
            escaped(&snapshot.model.kv_format)
        ),
        1,
    );
    page.counter("reprise_requests_total", "Requests that ended.", totals.requests);
    page.counter(
        "reprise_requests_refused_total",
        "Requests that the engine refused.",
        totals.refused,
    );
    page.counter(
        "reprise_prompt_tokens_total",
        "Prompt tokens of ended requests.",
        totals.prompt_tokens,
    );
    page.counter(
        "reprise_prompt_tokens_reused_total",
        "Prompt tokens whose keys and values were there already.",
        totals.reused_tokens,
    );
    page.counter(
        "reprise_answer_tokens_total",
        "Tokens answered by ended requests.",
        totals.answer_tokens,
    );
    page.counter(
        "reprise_speculation_guessed_tokens_total",
        "Tokens guessed ahead.",
        speculation.guessed,
    );
    page.counter(
        "reprise_speculation_accepted_tokens_total",
        "Tokens guessed right.",
        speculation.accepted,
    );
    let [queued, prefill, decode] = phases(snapshot);
    page.labelled(
        "reprise_lanes",
        "Active requests by phase.",
        "phase",
        &[("prefill", prefill), ("decode", decode)],
    );
    page.gauge(
        "reprise_queued_requests",
        "Requests that wait for a lane.",
        queued,
    );
    page.labelled(
        "reprise_kv_pages",
        "Pages of the KV pool by state.",
        "state",
        &[
            ("in_use", pool.in_use_pages),
            ("cached", pool.cached_pages),
            ("free", pool.free_pages),
        ],
    );
    page.gauge(
        "reprise_kv_pages_promised",
        "Free pages promised to active requests.",
        pool.promised_pages,
    );
    page.gauge(
        "reprise_kv_pages_high_water",
        "Most pages held at once.",
        pool.high_water_pages,
    );
    page.gauge("reprise_kv_page_bytes", "Bytes of a page.", pool.page_bytes);
    page.gauge(
        "reprise_kv_resident_bytes",
        "Bytes of the KV pool that the system has really given.",
        pool.resident_bytes,
    );
    if let Some(bytes) = memory.process_bytes {
        page.gauge(
            "reprise_process_resident_bytes",
            "Resident memory of the process.",
            bytes,
        );
    }
    page.gauge(
        "reprise_memory_limit_bytes",
        "Memory the process may take before new work is refused.",
        memory.limit_bytes,
    );
    page.gauge(
        "reprise_memory_available_bytes",
        "Memory programs can still have.",
        memory.available_bytes,
    );
    page.gauge(
        "reprise_memory_refusing",
        "1 while new work would be refused for want of memory.",
        u8::from(memory.refusal.is_some()),
    );
    meters.first_token.write(
        &mut page,
        "reprise_time_to_first_token_seconds",
        "From a request's arrival to its first token.",
    );
    meters.speed.write(
        &mut page,
        "reprise_decode_tokens_per_second",
        "Speed of an answer after its first token.",
    );
    page.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_engine::StopReason;
    use std::time::Duration;

    #[test]
    fn each_metric_is_explained_once_before_its_values() {
        let meters = Meters::default();
        let snapshot = Snapshot::default();
        let page = page("a \"model\"\n", &snapshot, &meters);
        let mut explained = std::collections::HashSet::new();
        let mut current = String::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().unwrap().to_owned();
                assert!(explained.insert(current.clone()), "{line}");
                assert!(rest.ends_with('.'), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(rest.starts_with(&format!("{current} ")), "{line}");
            } else {
                assert!(line.starts_with(&current), "{line}");
                let (_, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(page.contains("model=\"a \\\"model\\\"\\n\""), "{page}");
        assert!(page.ends_with('\n'));
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let meters = Meters::default();
        for (tokens, first, rest) in [(11, 50, 1_000), (1, 700, 0), (0, 5, 5)] {
            meters.answered(&Answer {
                text: String::new(),
                stop: StopReason::MaxTokens,
                prompt_tokens: 1,
                reused_tokens: 0,
                moved_tokens: 0,
                recomputed_tokens: 0,
                answer_tokens: tokens,
                waiting_time: Duration::ZERO,
                time_to_first_token: Duration::from_millis(first),
                decode_time: Duration::from_millis(rest),
                steps: Default::default(),
                explanation: None,
            });
        }
        let page = page("m", &Snapshot::default(), &meters);
        for line in [
            "reprise_time_to_first_token_seconds_bucket{le=\"0.05\"} 1",
            "reprise_time_to_first_token_seconds_bucket{le=\"0.5\"} 1",
            "reprise_time_to_first_token_seconds_bucket{le=\"1\"} 2",
            "reprise_time_to_first_token_seconds_bucket{le=\"+Inf\"} 2",
            "reprise_time_to_first_token_seconds_sum 0.75",
            "reprise_time_to_first_token_seconds_count 2",
            "reprise_decode_tokens_per_second_bucket{le=\"5\"} 0",
            "reprise_decode_tokens_per_second_bucket{le=\"10\"} 1",
            "reprise_decode_tokens_per_second_count 1",
        ] {
            assert!(page.contains(&format!("{line}\n")), "{line}\n{page}");
        }
    }
}

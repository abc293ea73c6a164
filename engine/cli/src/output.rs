//! What a person sees while a request runs: the answer on standard output, everything about it on standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use reprise_engine::{Answer, CancelToken, Event, StopReason};

use crate::failure::{Failure, Outcome};

/// How often the progress line is drawn anew on a terminal, and written elsewhere.
const REDRAW: Duration = Duration::from_millis(100);
const REWRITE: Duration = Duration::from_secs(5);
/// Back to the line's beginning, and everything in it gone.
const CLEAR: &str = "\r\x1b[2K";
/// Shorter prompts are read before a person could read a progress line.
const LONG_PROMPT_TOKENS: usize = 256;

/// Digits in groups: 12,400.
pub fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// "1 token", "2,000 tokens".
pub fn counted(number: usize, noun: &str) -> String {
    format!(
        "{} {noun}{}",
        with_commas(number),
        if number == 1 { "" } else { "s" }
    )
}

/// A text without what a terminal would obey: documents, file names and answers come from anywhere.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match text.contains(is_harmful) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.replace("\r\n", "\n").replace(is_harmful, "\u{fffd}")),
    }
}

/// Writes text to standard output.
pub fn print(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    out.write_all(harmless(text).as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output(&error))
}

/// A note for the person, apart from the answer; grey on a terminal.
pub fn note(text: &str) {
    let mut error = io::stderr();
    let text = harmless(text);
    // A closed standard error leaves nobody to tell.
    let _ = match error.is_terminal() {
        true => writeln!(error, "\x1b[2m{text}\x1b[0m"),
        false => writeln!(error, "{text}"),
    };
}

/// A line on the terminal about work in progress, written over and over; gone when cleared or dropped. Off a terminal,
/// and in quiet, nothing is shown.
pub struct StatusLine {
    is_shown: bool,
    stands: bool,
}

impl StatusLine {
    pub fn new(quiet: bool) -> StatusLine {
        StatusLine {
            is_shown: !quiet && io::stderr().is_terminal(),
            stands: false,
        }
    }

    pub fn show(&mut self, text: &str) {
        self.write(&format!("{CLEAR}{text}"));
        self.stands = true;
    }

    /// Takes the line away, where one stands: another may have been written since.
    pub fn clear(&mut self) {
        if self.stands {
            self.write(CLEAR);
            self.stands = false;
        }
    }

    /// Takes whatever stands in the terminal's last line away, for a program that ends in the middle of its work.
    pub fn wipe() {
        let line = StatusLine::new(false);
        line.write(CLEAR);
    }

    fn write(&self, text: &str) {
        if self.is_shown {
            let mut error = io::stderr();
            // A closed standard error leaves nobody to tell.
            let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Shows one request as it runs.
pub struct Display {
    progress: Progress,
    answer_ended_line: bool,
    failed: Option<io::Error>,
}

impl Display {
    /// `quiet` shows the answer alone.
    pub fn new(quiet: bool) -> Display {
        Display {
            progress: Progress::new(quiet),
            answer_ended_line: true,
            failed: None,
        }
    }

    /// Shows an event. When nobody takes the output any more, the request is cancelled.
    pub fn show(&mut self, event: &Event<'_>, cancel: &CancelToken) {
        match event {
            Event::Prefill {
                done_tokens,
                total_tokens,
                reused_tokens,
                reading_time,
            } => {
                self.progress
                    .show(*done_tokens, *total_tokens, *reused_tokens, *reading_time);
            }
            Event::Text(text) => {
                self.progress.line.clear();
                let mut out = io::stdout().lock();
                if let Err(error) = out
                    .write_all(harmless(text).as_bytes())
                    .and_then(|()| out.flush())
                {
                    self.failed.get_or_insert(error);
                    cancel.cancel();
                }
                if !text.is_empty() {
                    self.answer_ended_line = text.ends_with('\n');
                }
            }
        }
    }

    /// Ends the line that the answer is in, before something else is said.
    pub fn end_line(&mut self, cancel: &CancelToken) {
        self.progress.line.clear();
        if !self.answer_ended_line {
            self.show(&Event::Text("\n"), cancel);
        }
    }

    /// Ends the answer's last line; the failure to write it, if there was one.
    pub fn finish(mut self) -> Outcome {
        self.progress.line.clear();
        if let Some(error) = self.failed {
            return Err(Failure::output(&error));
        }
        if self.answer_ended_line {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(b"\n")
            .and_then(|()| out.flush())
            .map_err(|error| Failure::output(&error))
    }
}

/// The line about a long prompt being read.
struct Progress {
    line: StatusLine,
    terminal: bool,
    quiet: bool,
    last: Option<Instant>,
}

impl Progress {
    fn new(quiet: bool) -> Progress {
        Progress {
            line: StatusLine::new(quiet),
            terminal: io::stderr().is_terminal(),
            quiet,
            last: None,
        }
    }

    fn show(&mut self, done: usize, total: usize, reused: usize, elapsed: Duration) {
        if self.quiet || done >= total || total.saturating_sub(reused) < LONG_PROMPT_TOKENS {
            return;
        }
        let pause = if self.terminal { REDRAW } else { REWRITE };
        // Off a terminal the first line waits too: a quick prompt writes none.
        let due = match self.last {
            Some(last) => last.elapsed() >= pause,
            None => self.terminal || elapsed >= pause,
        };
        if !due {
            return;
        }
        self.last = Some(Instant::now());
        let line = progress_line(done, total, reused, elapsed);
        if self.terminal {
            self.line.show(&line);
        } else {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

fn progress_line(done: usize, total: usize, reused: usize, elapsed: Duration) -> String {
    let mut line = format!("reading {} of {}", with_commas(done), counted(total, "token"));
    let read = done.saturating_sub(reused);
    if read > 0 && !elapsed.is_zero() {
        let rate = read as f64 / elapsed.as_secs_f64();
        let left = total.saturating_sub(done) as f64 / rate;
        line.push_str(&format!(", {rate:.0} tokens/s, {left:.0} s left"));
    }
    line
}

/// The line under an answer: how long, how fast, how much was reused, and why it ended when that is not plain.
pub fn footer(answer: &Answer) -> String {
    let mut parts = vec![match answer.answer_tokens {
        0 if answer.stop == StopReason::EndOfTurn => {
            "an empty answer: the model ended its turn at once".to_owned()
        }
        0 => "no token yet".to_owned(),
        _ => format!(
            "first token after {:.2} s",
            answer.time_to_first_token.as_secs_f64()
        ),
    }];
    if let Some(rate) = decode_rate(answer.answer_tokens, answer.decode_time) {
        parts.push(format!("{rate:.1} tokens/s"));
    }
    let reused = with_commas(answer.reused_tokens);
    parts.push(format!(
        "{reused} of {} reused",
        counted(answer.prompt_tokens, "prompt token")
    ));
    match &answer.stop {
        StopReason::EndOfTurn => {}
        StopReason::StopString(text) => parts.push(format!("ended at {text:?}")),
        StopReason::MaxTokens => parts.push(format!(
            "cut at {} (--max-tokens)",
            counted(answer.answer_tokens, "token")
        )),
        StopReason::WindowFull => parts.push("cut: the window is full (--context)".into()),
        StopReason::Repeating => {
            parts.push("cut: it only repeated itself; a larger model does less of that".into())
        }
        StopReason::Cancelled => parts.push("stopped".into()),
        StopReason::Capacity => parts.push("cut: the KV memory is full (--kv-budget)".into()),
    }
    format!("[{}]", parts.join(" | "))
}

/// Tokens a second after the first.
pub fn decode_rate(tokens: usize, time: Duration) -> Option<f64> {
    (tokens > 1 && !time.is_zero()).then(|| (tokens - 1) as f64 / time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_counted() {
        assert_eq!(
            [0, 12, 999, 1000, 1234567].map(with_commas),
            ["0", "12", "999", "1,000", "1,234,567"]
        );
        assert_eq!(counted(1, "token"), "1 token");
        assert_eq!(counted(0, "token"), "0 tokens");
    }

    #[test]
    fn the_progress_line_tells_tokens_rate_and_time_left() {
        let line = progress_line(1500, 4500, 500, Duration::from_secs(2));
        assert_eq!(line, "reading 1,500 of 4,500 tokens, 500 tokens/s, 6 s left");
        assert_eq!(progress_line(0, 10, 0, Duration::ZERO), "reading 0 of 10 tokens");
    }

    #[test]
    fn the_footer_tells_time_rate_reuse_and_why_it_ended() {
        let answer = Answer {
            text: String::new(),
            stop: StopReason::MaxTokens,
            prompt_tokens: 1310,
            reused_tokens: 1200,
            moved_tokens: 0,
            recomputed_tokens: 0,
            answer_tokens: 81,
            waiting_time: Duration::ZERO,
            time_to_first_token: Duration::from_millis(420),
            decode_time: Duration::from_secs(1),
            steps: Default::default(),
            explanation: None,
        };
        let expected = "[first token after 0.42 s | 80.0 tokens/s | 1,200 of 1,310 prompt tokens reused | cut at 81 tokens (--max-tokens)]";
        assert_eq!(footer(&answer), expected);
        let empty = Answer {
            answer_tokens: 0,
            stop: StopReason::EndOfTurn,
            ..answer
        };
        assert!(
            footer(&empty).starts_with("[an empty answer"),
            "{}",
            footer(&empty)
        );
    }
}

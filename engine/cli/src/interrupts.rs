//! Ctrl-C: while an answer is being made it stops the answer; a second one, or one at any other time, ends the program.
//! So does a request to end, or the end of the terminal, at any time.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reprise_engine::CancelToken;

use crate::failure::{Failure, Outcome};
use crate::output::StatusLine;

/// The exit code of a program ended by Ctrl-C.
pub const INTERRUPTED: i32 = 130;

/// What a program is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C.
    Interrupt,
    /// To end; with the exit code that says so.
    End(i32),
}

/// Takes over Ctrl-C and requests to end; once in a program.
#[cfg(unix)]
pub fn on_stop(mut react: impl FnMut(Stop) + Send + 'static) -> Outcome {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let cannot = |error: std::io::Error| Failure::message(format!("cannot listen for Ctrl-C: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(cannot)?;
    let listen = move || {
        for signal in signals.forever() {
            react(match signal {
                SIGINT => Stop::Interrupt,
                // As a shell would say it.
                other => Stop::End(128 + other),
            });
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(listen)
        .map(|_| ())
        .map_err(cannot)
}

/// Takes over Ctrl-C and the closing of the console; once in a program. Which of them it was is not told here.
#[cfg(not(unix))]
pub fn on_stop(mut react: impl FnMut(Stop) + Send + 'static) -> Outcome {
    ctrlc::set_handler(move || react(Stop::Interrupt))
        .map_err(|error| Failure::message(format!("cannot listen for Ctrl-C: {error}")))
}

/// Ends the program at Ctrl-C and at requests to end, and takes the line about work in progress away first; once in a
/// program.
pub fn end_without_a_trace() -> Outcome {
    on_stop(end)
}

/// Takes the line about work in progress away, and ends the program as it is asked to.
pub fn end(stop: Stop) {
    StatusLine::wipe();
    process::exit(match stop {
        Stop::Interrupt => INTERRUPTED,
        Stop::End(code) => code,
    })
}

/// The program's one reaction to Ctrl-C.
#[derive(Clone)]
pub struct Interrupts {
    cancel: CancelToken,
    answering: Arc<AtomicBool>,
}

impl Interrupts {
    /// Takes over Ctrl-C; once in a program.
    pub fn install() -> Outcome<Interrupts> {
        let interrupts = Interrupts {
            cancel: CancelToken::default(),
            answering: Arc::default(),
        };
        let seen = interrupts.clone();
        terminal::remember();
        on_stop(move |stop| {
            if let Stop::End(code) = stop {
                terminal::restore();
                process::exit(code);
            }
            if !seen.answering.load(Ordering::SeqCst) || seen.cancel.is_cancelled() {
                terminal::restore();
                process::exit(INTERRUPTED);
            }
            seen.cancel.cancel();
        })?;
        Ok(interrupts)
    }

    /// Runs a request that Ctrl-C cancels.
    pub fn while_answering<T>(&self, work: impl FnOnce(&CancelToken) -> T) -> T {
        self.cancel.reset();
        self.answering.store(true, Ordering::SeqCst);
        let outcome = work(&self.cancel);
        self.answering.store(false, Ordering::SeqCst);
        outcome
    }
}

/// How the terminal was before an editor of lines changed it. A program that is told to end while the editor waits leaves
/// no time to the editor to put it back.
#[cfg(unix)]
mod terminal {
    use std::io::{self, IsTerminal, Write};
    use std::sync::OnceLock;

    use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

    static BEFORE: OnceLock<Termios> = OnceLock::new();
    /// Pasted text is no longer marked as such.
    const NO_PASTE_MARKS: &[u8] = b"\x1b[?2004l";

    pub fn remember() {
        if let Ok(settings) = tcgetattr(io::stdin()) {
            let _ = BEFORE.set(settings);
        }
    }

    pub fn restore() {
        let Some(settings) = BEFORE.get() else { return };
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
        let mut out = io::stdout();
        if out.is_terminal() {
            let _ = out.write_all(NO_PASTE_MARKS).and_then(|()| out.flush());
        }
    }
}

#[cfg(not(unix))]
mod terminal {
    pub fn remember() {}

    pub fn restore() {}
}

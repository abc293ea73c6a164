//! Ctrl-C: while an answer is being made it stops the answer; a second one, or one at any other time, ends the program.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reprise_engine::CancelToken;

use crate::failure::{Failure, Outcome};

/// The exit code of a program ended by Ctrl-C.
pub const INTERRUPTED: i32 = 130;

/// Takes over Ctrl-C and requests to end; once in a program.
pub fn on_stop(react: impl FnMut() + Send + 'static) -> Outcome {
    ctrlc::set_handler(react).map_err(|error| Failure::message(format!("cannot listen for Ctrl-C: {error}")))
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
        on_stop(move || {
            if !seen.answering.load(Ordering::SeqCst) || seen.cancel.is_cancelled() {
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

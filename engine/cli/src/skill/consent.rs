//! Asking the person in the terminal before something runs.

use std::io::{self, IsTerminal, Write};

use reprise_engine::CancelToken;
use reprise_library::skills::{Consent, Permission, Question};

use crate::output::note;

/// Asks on the terminal; where there is none, denies and says how to allow.
pub struct AskInTerminal;

impl Consent for AskInTerminal {
    fn ask(&mut self, question: &Question<'_>, cancel: &CancelToken) -> Permission {
        note(&question.words());
        if !io::stdin().is_terminal() {
            let way = match question {
                Question::Script { skill, .. } => format!("reprise skill trust {}", skill.name),
                Question::Server { .. } => "start reprise in a terminal once".into(),
            };
            note(&format!(
                "not allowed: nobody can be asked here; to allow it: {way}"
            ));
            return Permission::Deny;
        }
        loop {
            let always = question.always_means();
            let mut error = io::stderr();
            // A closed standard error leaves nobody to ask, and the answer below is a denial.
            let _ = write!(error, "Allow it? [y] once, [a] always ({always}), [n] no: ")
                .and_then(|()| error.flush());
            match read_line(cancel).as_deref().map(str::trim) {
                Some("y" | "yes") => return Permission::Once,
                Some("a" | "always") => return Permission::Always,
                Some("n" | "no") | None => return Permission::Deny,
                Some(_) => {}
            }
        }
    }
}

/// A line of the terminal; none at its end, or when the person stops the answer instead.
fn read_line(cancel: &CancelToken) -> Option<String> {
    if !wait_for_input(cancel) {
        note("");
        return None;
    }
    let mut line = String::new();
    match io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}

/// Waits until something was typed; false when the answer is stopped first.
#[cfg(unix)]
fn wait_for_input(cancel: &CancelToken) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    let stdin = io::stdin();
    loop {
        if cancel.is_cancelled() {
            return false;
        }
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waiting, Some(&pause)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(not(unix))]
fn wait_for_input(cancel: &CancelToken) -> bool {
    !cancel.is_cancelled()
}

//! The helper that runs scripts of skills, as a program of its own for tests: the real programs are their own helpers.

use std::process::ExitCode;

fn main() -> ExitCode {
    reprise_library::skills::run::helper_main().unwrap_or_else(|| {
        eprintln!("this program is started by tests");
        ExitCode::from(2)
    })
}

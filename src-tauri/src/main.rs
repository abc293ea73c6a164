//! Starts the window, after what must be so before it.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    // Scripts of skills are started by this program itself, which confines itself first.
    if let Some(code) = reprise_library::skills::run::helper_main() {
        return code;
    }
    let level = match std::env::var("REPRISE_LOG")
        .ok()
        .and_then(|level| level.parse().ok())
    {
        Some(level) => level,
        None => tracing::Level::WARN,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .init();
    let code = match reprise_app::platform::prepare() {
        Ok(()) => reprise_app::run(),
        Err(message) => {
            eprintln!("error: {message}");
            1
        }
    };
    std::process::exit(code);
}

//! `reprise top`: what the engines of this person's programs do, live in the terminal, or once for a script.

mod line;
mod picture;
mod screen;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use reprise_library::running::{self, Listing, Running};

use crate::failure::{Failure, Outcome};
use crate::interrupts;
use crate::output::print;
use line::{Line, Style};
use picture::{Room, picture};
use screen::Screen;

/// The view is drawn at most this often.
const REDRAW: Duration = Duration::from_millis(250);
/// Columns where there is no terminal to fill.
const COLUMNS: usize = 80;

#[derive(Debug, Args)]
#[command(after_help = "\
Shows every program of yours that has an engine: chat, ask, serve, the app. In the map of the KV
pool a letter begins an owner's pages; full blocks are in use, light ones kept for later, dots free.
Arrow keys choose among several programs, q or Ctrl-C leaves.

Examples:
  reprise top
  reprise top --once
  reprise top --json --pid 4211")]
pub struct TopArguments {
    /// Print one picture and leave
    #[arg(long)]
    once: bool,
    /// Print the engines' snapshots as JSON, a list with one entry a program, and leave
    #[arg(long, conflicts_with = "once")]
    json: bool,
    /// Begin with this process; with --once or --json show no other
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
}

pub fn run(arguments: &TopArguments) -> Outcome {
    if arguments.json {
        let mut listing = running::list()?;
        // No engine is an empty list; one that was named and is not there is a failure.
        if arguments.pid.is_some() {
            listing = chosen(listing, arguments.pid)?;
        }
        return print(&(serde_json::to_string_pretty(&listing.running)? + "\n"));
    }
    if arguments.once {
        return print(&once(&chosen(running::list()?, arguments.pid)?));
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "the live view needs a terminal; use --once for one picture, or --json".into(),
        ));
    }
    live(arguments.pid)
}

/// What is to be shown; that there is nothing is a failure, for a script to notice.
fn chosen(mut listing: Listing, pid: Option<u32>) -> Outcome<Listing> {
    if let Some(pid) = pid {
        listing.running.retain(|running| running.pid == pid);
        if listing.running.is_empty() {
            return Err(Failure::message(format!(
                "process {pid} runs no engine of yours; see which do with: reprise top --once"
            )));
        }
    }
    if listing.running.is_empty() {
        let none = picture(
            &listing,
            0,
            0,
            Room {
                columns: 1_000,
                lines: None,
            },
        );
        let texts: Vec<String> = none.iter().map(|line| line.render(false)).collect();
        return Err(Failure::message(texts.join("; ")));
    }
    Ok(listing)
}

fn once(listing: &Listing) -> String {
    let is_terminal = io::stdout().is_terminal();
    let columns = if is_terminal {
        crossterm::terminal::size().ok()
    } else {
        None
    };
    let room = Room {
        columns: columns.map_or(COLUMNS, |(columns, _)| columns.into()),
        lines: None,
    };
    let pictures: Vec<String> = (0..listing.running.len())
        .map(|index| {
            let one = Listing {
                running: vec![listing.running[index].clone()],
                unreadable: if index == 0 {
                    listing.unreadable.clone()
                } else {
                    Vec::new()
                },
            };
            text(&picture(&one, 0, now_ms(), room), is_terminal && wants_colour())
        })
        .collect();
    pictures.join("\n")
}

fn text(lines: &[Line], styled: bool) -> String {
    lines.iter().map(|line| line.render(styled) + "\n").collect()
}

/// Draws until the person leaves.
fn live(pid: Option<u32>) -> Outcome {
    let stopped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stopped);
    interrupts::on_stop(move |_| seen.store(true, Ordering::SeqCst))?;
    let cannot = |error: io::Error| Failure::message(format!("cannot use the terminal: {error}; try --once"));
    let mut view = View { followed: None };
    let mut listing = running::list()?;
    if let Some(pid) = pid {
        view.followed = listing.running.iter().find(|running| running.pid == pid).map(key);
        if view.followed.is_none() {
            return Err(chosen(listing, Some(pid)).err().unwrap_or(Failure::Told));
        }
    }
    let mut screen = Screen::open().map_err(cannot)?;
    screen::leave_with_terminal().map_err(cannot)?;
    loop {
        let room = screen.room().map_err(cannot)?;
        let styled = wants_colour();
        let mut lines = picture(&listing, view.index(&listing), now_ms(), room);
        if let Some(first) = lines.first_mut() {
            let hint = if listing.running.len() > 1 {
                "arrows choose, q leaves"
            } else {
                "q leaves"
            };
            first.push_right(hint, Style::DIM, room.columns);
        }
        let lines = lines.iter().map(|line| line.render(styled)).collect();
        screen.draw(lines).map_err(|error| Failure::output(&error))?;
        let due = Instant::now() + REDRAW;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if stopped.load(Ordering::SeqCst) {
                return Ok(());
            }
            if !event::poll(left).map_err(cannot)? {
                break;
            }
            if let Event::Key(key) = event::read().map_err(cannot)?
                && key.kind != KeyEventKind::Release
            {
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Right | KeyCode::Down | KeyCode::Tab => view.step(&listing, 1),
                    KeyCode::Left | KeyCode::Up | KeyCode::BackTab => view.step(&listing, -1),
                    _ => {}
                }
            }
        }
        listing = running::list()?;
    }
}

/// What tells an engine from all others, also when process numbers come again.
type Key = (u32, u64);

fn key(running: &Running) -> Key {
    (running.pid, running.started_unix_ms)
}

/// Which engine the person looks at: the same one while others come and go.
struct View {
    followed: Option<Key>,
}

impl View {
    fn index(&self, listing: &Listing) -> usize {
        let position = |followed| {
            listing
                .running
                .iter()
                .position(|running| key(running) == followed)
        };
        self.followed.and_then(position).unwrap_or(0)
    }

    fn step(&mut self, listing: &Listing, by: isize) {
        let count = listing.running.len() as isize;
        if count > 0 {
            let next = (self.index(listing) as isize + by).rem_euclid(count) as usize;
            self.followed = listing.running.get(next).map(key);
        }
    }
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_engine::snapshot::Snapshot;

    #[test]
    fn the_view_follows_one_engine_while_others_come_and_go() {
        let running = |pid| Running {
            pid,
            program: "chat".into(),
            started_unix_ms: u64::from(pid),
            written_unix_ms: 0,
            snapshot: Snapshot::default(),
        };
        let listing = |pids: &[u32]| Listing {
            running: pids.iter().map(|&pid| running(pid)).collect(),
            unreadable: Vec::new(),
        };
        let mut view = View { followed: None };
        view.step(&listing(&[]), 1);
        assert_eq!(view.index(&listing(&[])), 0);
        view.step(&listing(&[1, 2, 3]), -1);
        assert_eq!(view.index(&listing(&[1, 2, 3])), 2);
        assert_eq!(view.index(&listing(&[2, 3])), 1);
        assert_eq!(view.index(&listing(&[2])), 0, "it has gone");
        view.step(&listing(&[1, 2, 3]), 1);
        assert_eq!(view.index(&listing(&[1, 2, 3])), 0);
    }

    #[test]
    fn nothing_to_show_says_what_to_do() {
        for (pid, words) in [(None, "reprise chat, reprise serve"), (Some(7), "process 7")] {
            match chosen(Listing::default(), pid) {
                Err(Failure::Message(text)) => assert!(text.contains(words), "{text}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

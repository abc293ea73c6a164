//! The terminal while a live view has it: a screen of its own, given back however the view ends.

use std::io::{self, Write, stdout};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::Print;
use crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};

use super::picture::Room;

/// Ends the program when its terminal is gone, which is also the end of whatever reads keys from it: crossterm takes the
/// end of a terminal's input for nothing yet, and asks for ever.
#[cfg(unix)]
pub fn leave_with_terminal() -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let watch = || {
        let input = io::stdin();
        loop {
            std::thread::sleep(LOOK);
            let mut watched = [PollFd::new(&input, PollFlags::empty())];
            let now = Timespec::default();
            if poll(&mut watched, Some(&now)).is_ok() && watched[0].revents().contains(PollFlags::HUP) {
                std::process::exit(0);
            }
        }
    };
    std::thread::Builder::new()
        .name("terminal".into())
        .spawn(watch)
        .map(|_| ())
}

/// Elsewhere a closed console ends its programs.
#[cfg(not(unix))]
pub fn leave_with_terminal() -> io::Result<()> {
    Ok(())
}

/// How often the terminal is looked at.
#[cfg(unix)]
const LOOK: std::time::Duration = std::time::Duration::from_millis(500);

/// The screen; leaving it out of sight gives the terminal back as it was.
pub struct Screen {
    /// What stands there, line by line.
    shown: Vec<String>,
    room: (u16, u16),
}

impl Screen {
    pub fn open() -> io::Result<Screen> {
        enable_raw_mode()?;
        // From here on a failure gives the terminal back.
        let screen = Screen {
            shown: Vec::new(),
            room: (0, 0),
        };
        execute!(stdout(), EnterAlternateScreen, DisableLineWrap, Hide)?;
        Ok(screen)
    }

    /// The room there is now.
    pub fn room(&mut self) -> io::Result<Room> {
        let room = size()?;
        if room != self.room {
            self.room = room;
            self.shown.clear();
            execute!(stdout(), Clear(ClearType::All))?;
        }
        Ok(Room {
            columns: room.0.into(),
            lines: Some(room.1.into()),
        })
    }

    /// Writes the lines that changed.
    pub fn draw(&mut self, lines: Vec<String>) -> io::Result<()> {
        let mut out = stdout().lock();
        for row in 0..lines.len().max(self.shown.len()) {
            let (new, old) = (lines.get(row), self.shown.get(row));
            if new != old {
                let text = new.map_or("", String::as_str);
                let row = u16::try_from(row).unwrap_or(u16::MAX);
                queue!(out, MoveTo(0, row), Clear(ClearType::CurrentLine), Print(text))?;
            }
        }
        out.flush()?;
        self.shown = lines;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing more can be done for a terminal that takes none of this.
        let _ = execute!(stdout(), Show, EnableLineWrap, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

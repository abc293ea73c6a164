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

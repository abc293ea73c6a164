//! Lines of styled text, cut to a width, for a terminal or for plain output.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a piece of a line looks. Nothing is told by colour alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub bold: bool,
    pub dim: bool,
    /// One of the terminal's colours.
    pub colour: Option<u8>,
}

impl Style {
    pub const PLAIN: Style = Style {
        bold: false,
        dim: false,
        colour: None,
    };
    pub const BOLD: Style = Style {
        bold: true,
        ..Style::PLAIN
    };
    pub const DIM: Style = Style {
        dim: true,
        ..Style::PLAIN
    };

    pub const fn colour(colour: u8) -> Style {
        Style {
            colour: Some(colour),
            ..Style::PLAIN
        }
    }
}

/// A line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line(Vec<(String, Style)>);

impl Line {
    pub fn plain(text: impl AsRef<str>) -> Line {
        let mut line = Line::default();
        line.push(text, Style::PLAIN);
        line
    }

    /// Adds text. What a terminal would take for a command is left out: labels come from elsewhere.
    pub fn push(&mut self, text: impl AsRef<str>, style: Style) {
        let text: String = text.as_ref().chars().filter(|&c| is_shown(c)).collect();
        match self.0.last_mut() {
            Some((last, same)) if *same == style => last.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.0.push((text, style)),
        }
    }

    pub fn append(&mut self, other: Line) {
        for (text, style) in other.0 {
            self.push(text, style);
        }
    }

    /// Adds text at the right end of a line of so many columns, where it fits.
    pub fn push_right(&mut self, text: &str, style: Style, columns: usize) {
        let taken = self.width() + text.width();
        if taken + 2 <= columns {
            self.push(" ".repeat(columns - taken), Style::PLAIN);
            self.push(text, style);
        }
    }

    /// Columns it takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }

    /// Cuts it to a width.
    pub fn fit(mut self, columns: usize) -> Line {
        if self.width() > columns {
            let mut room = columns.saturating_sub(1);
            for (text, _) in &mut self.0 {
                let cut = cut(text, room);
                room = if cut.len() < text.len() {
                    0
                } else {
                    room - cut.width()
                };
                *text = cut.to_owned();
            }
            self.push("…", Style::PLAIN);
            self.0.retain(|(text, _)| !text.is_empty());
        }
        self
    }

    /// As text, with the terminal's own marks for styles where they are wanted.
    pub fn render(&self, styled: bool) -> String {
        let mut out = String::new();
        for (text, style) in &self.0 {
            if !styled || *style == Style::PLAIN {
                out.push_str(text);
                continue;
            }
            let mut codes = Vec::new();
            codes.extend(style.bold.then(|| "1".to_owned()));
            codes.extend(style.dim.then(|| "2".to_owned()));
            codes.extend(style.colour.map(|colour| format!("38;5;{colour}")));
            out.push_str(&format!("\x1b[{}m{text}\x1b[0m", codes.join(";")));
        }
        out
    }
}

/// Whether a terminal shows the character where it stands: no control characters, and none that turns the direction of
/// what follows.
fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The beginning of a text that takes at most so many columns.
fn cut(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    for (index, c) in text.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > columns {
            return &text[..index];
        }
    }
    text
}

/// A text in a column of its own: cut or filled up.
pub fn column(text: &str, columns: usize) -> String {
    let shown: String = text.chars().filter(|&c| is_shown(c)).collect();
    let mut cell = Line::plain(shown).fit(columns).render(false);
    cell.push_str(&" ".repeat(columns.saturating_sub(cell.width())));
    cell
}

/// Lays pieces out one after the other, two columns apart, in as many lines as that takes.
pub fn flow(pieces: Vec<Line>, columns: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.width() + 2 + piece.width() <= columns => {
                line.push("  ", Style::PLAIN);
                line.append(piece);
            }
            _ => lines.push(piece.fit(columns)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_and_keeps_its_styles() {
        let mut line = Line::plain("ab");
        line.push("烤面包", Style::BOLD);
        assert_eq!(line.width(), 8);
        assert_eq!(line.clone().fit(8), line);
        let cut = line.fit(6);
        assert_eq!(cut.render(false), "ab烤…");
        assert_eq!(cut.render(true), "ab\x1b[1m烤\x1b[0m…");
        assert_eq!(Line::plain("abc").fit(1).render(false), "…");
    }

    #[test]
    fn labels_cannot_steer_the_terminal() {
        assert_eq!(Line::plain("a\x1b[2J\u{202e}b\r\n").render(true), "a[2Jb");
        assert_eq!(column("x\u{7}yz", 5), "xyz  ");
        assert_eq!(column("much too long", 5), "much…");
    }

    #[test]
    fn pieces_flow_into_lines() {
        let pieces = ["one", "two", "three"].map(Line::plain).to_vec();
        let lines: Vec<String> = flow(pieces, 9).iter().map(|line| line.render(false)).collect();
        assert_eq!(lines, ["one  two", "three"]);
    }
}

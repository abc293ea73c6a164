//! Where a stretch of text stands in its document, in the words a person would look for it with.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

#[cfg(feature = "bindings")]
use ts_rs::TS;

/// Where a stretch of text stands in its document; both ends are counted from 1 and included.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub enum Place {
    /// Pages of a PDF.
    Pages {
        /// First page.
        first: usize,
        /// Last page.
        last: usize,
    },
    /// Lines of a text file, or of what was recognised in a picture.
    Lines {
        /// First line.
        first: usize,
        /// Last line.
        last: usize,
    },
    /// Paragraphs of a web page, a letter or a mail, which have neither pages nor lines of their own.
    Paragraphs {
        /// First paragraph.
        first: usize,
        /// Last paragraph.
        last: usize,
    },
    /// Slides of a presentation.
    Slides {
        /// First slide.
        first: usize,
        /// Last slide.
        last: usize,
    },
    /// Chapters of an e-book: the files in its reading order.
    Chapters {
        /// First chapter.
        first: usize,
        /// Last chapter.
        last: usize,
    },
    /// Rows of a table, numbered as a spreadsheet program shows them.
    Rows {
        /// The sheet's name; a file that is one table has none.
        sheet: Option<String>,
        /// First row.
        first: usize,
        /// Last row.
        last: usize,
    },
}

impl Place {
    /// A single page.
    pub(crate) fn page(number: usize) -> Place {
        Place::Pages {
            first: number,
            last: number,
        }
    }

    /// A single paragraph.
    pub(crate) fn paragraph(number: usize) -> Place {
        Place::Paragraphs {
            first: number,
            last: number,
        }
    }

    /// The place of some of its lines of text, counted from 0: a row is a line too, and other places stay as they are.
    pub(crate) fn lines_of(&self, lines: RangeInclusive<usize>) -> Place {
        let mut place = self.clone();
        if let Place::Lines { first, last } | Place::Rows { first, last, .. } = &mut place {
            *last = *first + lines.end();
            *first += lines.start();
        }
        place
    }

    /// The place from the start of this one to the end of a later one; `None` where no single place covers both.
    pub(crate) fn through(&self, later: &Place) -> Option<Place> {
        let joined = match (self, later) {
            (Place::Pages { first, .. }, Place::Pages { last, .. }) => Place::Pages {
                first: *first,
                last: *last,
            },
            (Place::Lines { first, .. }, Place::Lines { last, .. }) => Place::Lines {
                first: *first,
                last: *last,
            },
            (Place::Paragraphs { first, .. }, Place::Paragraphs { last, .. }) => Place::Paragraphs {
                first: *first,
                last: *last,
            },
            (Place::Slides { first, .. }, Place::Slides { last, .. }) => Place::Slides {
                first: *first,
                last: *last,
            },
            (Place::Chapters { first, .. }, Place::Chapters { last, .. }) => Place::Chapters {
                first: *first,
                last: *last,
            },
            (
                Place::Rows { sheet, first, .. },
                Place::Rows {
                    sheet: other, last, ..
                },
            ) if sheet == other => Place::Rows {
                sheet: sheet.clone(),
                first: *first,
                last: *last,
            },
            _ => return None,
        };
        Some(joined)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, first, last) = match self {
            Place::Pages { first, last } => ("page", first, last),
            Place::Lines { first, last } => ("line", first, last),
            Place::Paragraphs { first, last } => ("paragraph", first, last),
            Place::Slides { first, last } => ("slide", first, last),
            Place::Chapters { first, last } => ("chapter", first, last),
            Place::Rows { sheet, first, last } => {
                if let Some(sheet) = sheet {
                    write!(out, "{sheet}, ")?;
                }
                ("row", first, last)
            }
        };
        if first == last {
            write!(out, "{one} {first}")
        } else {
            write!(out, "{one}s {first}-{last}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sheet: &str, first: usize, last: usize) -> Place {
        Place::Rows {
            sheet: Some(sheet.into()),
            first,
            last,
        }
    }

    #[test]
    fn places_read_like_a_person_says_them() {
        assert_eq!(Place::page(3).to_string(), "page 3");
        assert_eq!(rows("Prices", 2, 9).to_string(), "Prices, rows 2-9");
        let table = Place::Rows {
            sheet: None,
            first: 4,
            last: 4,
        };
        assert_eq!(table.to_string(), "row 4");
    }

    #[test]
    fn rows_of_two_sheets_are_no_single_place() {
        assert_eq!(rows("A", 1, 2).through(&rows("A", 3, 4)), Some(rows("A", 1, 4)));
        assert_eq!(rows("A", 1, 2).through(&rows("B", 3, 4)), None);
        assert_eq!(Place::page(1).through(&rows("A", 1, 1)), None);
    }
}

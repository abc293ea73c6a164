//! Tables as text: a line a row, cells side by side. Rows are gathered into blocks of about a passage each; the table's first row is
//! their last heading, so that every passage of a table knows what its columns are.

use csv::{ReaderBuilder, Trim};

use super::draft::{Draft, one_line, shortened};
use super::guard::Watch;
use crate::error::Fault;
use crate::place::Place;

/// What stands between two cells of a row.
pub(super) const CELL_JOINT: &str = " | ";
/// A longer cell is text that happens to stand in a table; it is cut, and the document says so.
const CELL_CHARACTERS: usize = 32_767;
/// A row has no more cells than a spreadsheet has columns.
const CELLS: usize = 16_384;
/// A block of rows is closed when it has this many bytes.
const BLOCK_BYTES: usize = 800;
/// How much of a table's first row is told again with each passage.
const COLUMNS_CHARACTERS: usize = 160;
/// How many rows are read between two looks at the watch.
const GLANCE: usize = 1_024;
/// How much of a file its separator is guessed from.
const GUESS_BYTES: usize = 64 << 10;

/// A cell's text in one line.
pub(super) fn cell(text: &str) -> String {
    one_line(text)
}

/// Gathers rows into blocks of a draft.
pub(super) struct Rows<'a> {
    draft: &'a mut Draft,
    sheet: Option<String>,
    lines: Vec<String>,
    bytes: usize,
    first: usize,
    last: usize,
    has_columns: bool,
}

impl<'a> Rows<'a> {
    /// A table in a draft, of a sheet or the only one.
    pub(super) fn new(draft: &'a mut Draft, sheet: Option<String>) -> Rows<'a> {
        draft.under_nothing();
        if let Some(sheet) = &sheet {
            draft.under(1, sheet);
        }
        Rows {
            draft,
            sheet,
            lines: Vec::new(),
            bytes: 0,
            first: 0,
            last: 0,
            has_columns: false,
        }
    }

    /// Adds a row by its number, counted from 1; empty ones leave a gap.
    pub(super) fn add(&mut self, number: usize, cells: &[String]) -> Result<(), Fault> {
        let used = cells
            .iter()
            .rposition(|cell| !cell.is_empty())
            .map_or(0, |last| last + 1);
        let cells = &cells[..used.min(CELLS)];
        if cells.is_empty() {
            return Ok(());
        }
        let mut cut = false;
        let line = cells
            .iter()
            .map(|cell| {
                cut |= cell.len() > CELL_CHARACTERS && cell.chars().nth(CELL_CHARACTERS).is_some();
                shortened(cell, CELL_CHARACTERS)
            })
            .collect::<Vec<_>>()
            .join(CELL_JOINT);
        if cut {
            self.draft
                .note(format!("cells of more than {CELL_CHARACTERS} characters are cut"));
        }
        if !self.has_columns {
            self.has_columns = true;
            self.draft.under(2, &shortened(&line, COLUMNS_CHARACTERS));
        }
        // A block's rows follow each other, so that a row is found by counting lines.
        if self.bytes + line.len() > BLOCK_BYTES || number != self.last + 1 {
            self.flush()?;
        }
        if self.lines.is_empty() {
            self.first = number;
        }
        self.last = number;
        self.bytes += line.len() + 1;
        self.lines.push(line);
        Ok(())
    }

    /// Writes what is gathered.
    pub(super) fn finish(mut self) -> Result<(), Fault> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Fault> {
        let text = std::mem::take(&mut self.lines).join("\n");
        self.bytes = 0;
        let place = Place::Rows {
            sheet: self.sheet.clone(),
            first: self.first,
            last: self.last,
        };
        self.draft.block(&text, place)
    }
}

/// Values separated by commas, semicolons, tabs or bars, whichever the first lines have most regularly.
pub(super) fn read_csv(text: &str, watch: &Watch) -> Result<Draft, Fault> {
    let mut reader = ReaderBuilder::new()
        .delimiter(separator(text))
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut draft = Draft::with_joint("\n");
    let mut rows = Rows::new(&mut draft, None);
    for (index, record) in reader.records().enumerate() {
        if index.is_multiple_of(GLANCE) {
            watch.check()?;
        }
        let record = record.map_err(|error| Fault::Broken {
            kind: "a CSV table".into(),
            why: error.to_string(),
        })?;
        let cells: Vec<String> = record.iter().take(CELLS).map(cell).collect();
        rows.add(index + 1, &cells)?;
    }
    rows.finish()?;
    Ok(draft)
}

fn separator(text: &str) -> u8 {
    let mut end = text.len().min(GUESS_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let score = |separator: u8| {
        let mut counts = text[..end]
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(20)
            .map(|line| line.bytes().filter(|&byte| byte == separator).count());
        let first = counts.next().unwrap_or(0);
        let alike = 1 + counts.filter(|&count| count == first).count();
        if first == 0 {
            0
        } else {
            alike * 100 + first.min(99)
        }
    };
    // The first of equals wins: a comma is the most likely.
    let mut best = (b',', score(b','));
    for separator in [b';', b'\t', b'|'] {
        let found = score(separator);
        if found > best.1 {
            best = (separator, found);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Document, Format, ReadOptions};
    use crate::extract::guard::LIMIT;
    use crate::passage::split;

    fn table(text: &str) -> Document {
        let watch = Watch::new(&ReadOptions::default(), LIMIT);
        read_csv(text, &watch)
            .unwrap()
            .finish("a.csv", Format::Csv)
            .unwrap()
    }

    #[test]
    fn quoted_cells_and_other_separators_are_understood() {
        let document = table("name;note\nAda;\"first; programmer\n(1843)\"\n");
        assert_eq!(document.text(), "name | note\nAda | first; programmer (1843)");
        assert_eq!(table("a\tb\n1,5\t2,5\n").text(), "a | b\n1,5 | 2,5");
    }

    #[test]
    fn every_passage_of_a_table_knows_its_rows_and_columns() {
        let text: String = std::iter::once("item,price\n".to_string())
            .chain((1..=400).map(|n| format!("thing number {n},{}\n", n * 10)))
            .collect();
        let count = |text: &str| text.len().div_ceil(4);
        let passages = split(&table(&text), 232, &count);
        assert!(passages.len() > 5);
        for passage in &passages {
            assert!(passage.tokens <= 256, "{}", passage.tokens);
            assert!(passage.rendered().contains("item | price\n"));
            let Place::Rows { first, last, .. } = passage.place else {
                panic!()
            };
            assert!(passage.text.starts_with(&format!("thing number {} |", first - 1)) || first == 1);
            assert!(
                passage
                    .text
                    .lines()
                    .last()
                    .unwrap()
                    .starts_with(&format!("thing number {} |", last - 1))
            );
        }
    }
}

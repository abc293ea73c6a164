//! Workbooks (xlsx, xlsb): the cells of each sheet, row by row. Cells are streamed, because a hostile file may claim a sheet of
//! billions of cells with two of them in its corners.

use std::io::Cursor;

use calamine::{DataRef, ExcelDateTime, Reader, Xlsb, XlsbError, Xlsx, XlsxError};

use super::archive::Archive;
use super::draft::Draft;
use super::guard::Watch;
use super::table::{Rows, cell};
use crate::error::Fault;

pub(super) const KIND: &str = "an Excel workbook";

/// How many cells are read between two looks at the watch.
const GLANCE: usize = 4_096;
/// Columns are numbered up to this in every version of Excel.
const COLUMNS: usize = 16_384;
/// Empty cells between two values that are kept, so that columns stay beneath each other.
const GAP: usize = 64;

/// Reads a workbook; `is_binary` for xlsb.
pub(super) fn read(bytes: &[u8], is_binary: bool, watch: &Watch) -> Result<Draft, Fault> {
    // The reader trusts the archive, so everything in it is unpacked and counted first.
    Archive::open(bytes, KIND)?.measure()?;
    watch.check()?;
    let mut draft = Draft::with_joint("\n");
    let broken = |why: String| Fault::Broken {
        kind: KIND.into(),
        why,
    };
    if is_binary {
        let broken = |error: XlsbError| broken(error.to_string());
        let mut book = Xlsb::new(Cursor::new(bytes)).map_err(broken)?;
        for name in book.sheet_names() {
            let Ok(mut cells) = book.worksheet_cells_reader(&name) else {
                draft.note(unread(&name));
                continue;
            };
            let mut sheet = Sheet::new(&mut draft, &name, watch);
            while let Some(cell) = cells.next_cell().map_err(broken)? {
                sheet.add(cell.get_position(), cell.get_value())?;
            }
            sheet.finish()?;
        }
    } else {
        let broken = |error: XlsxError| broken(error.to_string());
        let mut book = Xlsx::new(Cursor::new(bytes)).map_err(broken)?;
        for name in book.sheet_names() {
            let Ok(mut cells) = book.worksheet_cells_reader(&name) else {
                draft.note(unread(&name));
                continue;
            };
            let mut sheet = Sheet::new(&mut draft, &name, watch);
            while let Some(cell) = cells.next_cell().map_err(broken)? {
                sheet.add(cell.get_position(), cell.get_value())?;
            }
            sheet.finish()?;
        }
    }
    Ok(draft)
}

fn unread(name: &str) -> String {
    format!("the sheet {name} has no cells that can be read (a chart?)")
}

struct Sheet<'a> {
    rows: Rows<'a>,
    watch: &'a Watch,
    cells: Vec<String>,
    row: usize,
    seen: usize,
}

impl<'a> Sheet<'a> {
    fn new(draft: &'a mut Draft, name: &str, watch: &'a Watch) -> Sheet<'a> {
        Sheet {
            rows: Rows::new(draft, Some(name.to_string())),
            watch,
            cells: Vec::new(),
            row: 0,
            seen: 0,
        }
    }

    fn add(&mut self, (row, column): (u32, u32), value: &DataRef<'_>) -> Result<(), Fault> {
        self.seen += 1;
        if self.seen.is_multiple_of(GLANCE) {
            self.watch.check()?;
        }
        let row = row as usize + 1;
        if row != self.row {
            self.end_row()?;
            self.row = row;
        }
        let text = cell(&shown(value));
        let column = column as usize;
        if text.is_empty() || column >= COLUMNS {
            return Ok(());
        }
        let wanted = column.min(self.cells.len() + GAP);
        if self.cells.len() < wanted {
            self.cells.resize(wanted, String::new());
        }
        self.cells.push(text);
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Fault> {
        let cells = std::mem::take(&mut self.cells);
        self.rows.add(self.row, &cells)
    }

    fn finish(mut self) -> Result<(), Fault> {
        self.end_row()?;
        self.rows.finish()
    }
}

/// A value as a spreadsheet program shows it, without its number format.
fn shown(value: &DataRef<'_>) -> String {
    match value {
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => shown_number(*number),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::SharedString(text) => (*text).to_string(),
        DataRef::Bool(value) => value.to_string(),
        DataRef::DateTime(time) => shown_time(time),
        DataRef::Error(error) => error.to_string(),
        DataRef::Empty => String::new(),
    }
}

/// Fifteen digits are what a spreadsheet keeps; the rest is rounding.
fn shown_number(number: f64) -> String {
    if number == number.trunc() && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let short = format!("{number:.14e}");
    short
        .parse::<f64>()
        .map_or_else(|_| number.to_string(), |rounded| rounded.to_string())
}

fn shown_time(time: &ExcelDateTime) -> String {
    if time.is_duration() {
        let minutes = (time.as_f64() * 24.0 * 60.0).round();
        return format!("{}:{:02}", (minutes / 60.0).trunc(), (minutes % 60.0).abs());
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    if (hour, minute, second) == (0, 0, 0) {
        date
    } else {
        format!("{date} {hour:02}:{minute:02}:{second:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_noise_of_rounding() {
        assert_eq!(shown_number(0.1 + 0.2), "0.3");
        assert_eq!(shown_number(1200.0), "1200");
        assert_eq!(shown_number(-2.5), "-2.5");
    }
}

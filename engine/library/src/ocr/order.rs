//! Puts recognised lines in reading order: columns of prose one after the other, everything else row by row, with a new paragraph
//! where rows stand apart.

use super::detect::Bounds;

/// A line of text and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) bounds: Bounds,
    pub(super) text: String,
}

impl Line {
    fn height(&self) -> f32 {
        self.bounds.bottom - self.bounds.top
    }
    fn width(&self) -> f32 {
        self.bounds.right - self.bounds.left
    }
}

/// Columns have at least so many lines each; fewer are a table.
const COLUMN_LINES: usize = 6;
/// Lines of prose fill their column; those of a table do not.
const FILLED_SHARE: f32 = 0.6;
/// Columns of columns of columns are enough.
const DEPTH: usize = 4;
/// Rows further apart than this part of a line's height are different paragraphs.
const APART: f32 = 0.9;

/// Paragraphs in reading order.
pub(super) fn paragraphs(lines: Vec<Line>) -> Vec<String> {
    let mut done = Vec::new();
    in_columns(lines, DEPTH, &mut done);
    done
}

fn in_columns(lines: Vec<Line>, depth: usize, done: &mut Vec<String>) {
    if depth > 0
        && let Some((left, right)) = columns(&lines)
    {
        // What is wider than a column stands above, between or below both.
        let edge = left.iter().map(|line| line.bounds.right).fold(f32::MIN, f32::max);
        let start = right.iter().map(|line| line.bounds.left).fold(f32::MAX, f32::min);
        let top = left
            .iter()
            .chain(&right)
            .map(|line| line.bounds.top)
            .fold(f32::MAX, f32::min);
        let (above, below): (Vec<Line>, Vec<Line>) = lines
            .into_iter()
            .filter(|line| line.bounds.right > edge && line.bounds.left < start)
            .partition(|line| line.bounds.top < top);
        row_by_row(above, done);
        in_columns(left, depth - 1, done);
        in_columns(right, depth - 1, done);
        row_by_row(below, done);
        return;
    }
    row_by_row(lines, done);
}

/// The lines left and right of a gutter, where both sides are prose.
fn columns(lines: &[Line]) -> Option<(Vec<Line>, Vec<Line>)> {
    let left_end = lines.iter().map(|line| line.bounds.left).fold(f32::MAX, f32::min);
    let right_end = lines
        .iter()
        .map(|line| line.bounds.right)
        .fold(f32::MIN, f32::max);
    let middle = f32::midpoint(left_end, right_end);
    let (mut left, mut right, mut across) = (Vec::new(), Vec::new(), 0);
    for line in lines {
        if line.bounds.right <= middle {
            left.push(line.clone());
        } else if line.bounds.left >= middle {
            right.push(line.clone());
        } else {
            across += 1;
        }
    }
    let is_prose = |side: &[Line]| {
        let start = side.iter().map(|line| line.bounds.left).fold(f32::MAX, f32::min);
        let end = side.iter().map(|line| line.bounds.right).fold(f32::MIN, f32::max);
        let full = side
            .iter()
            .filter(|line| line.width() >= FILLED_SHARE * (end - start))
            .count();
        side.len() >= COLUMN_LINES && full * 3 >= side.len() * 2
    };
    let most = left.len().min(right.len());
    (across <= most / 2 && is_prose(&left) && is_prose(&right)).then_some((left, right))
}

fn row_by_row(mut lines: Vec<Line>, done: &mut Vec<String>) {
    let center = |line: &Line| f32::midpoint(line.bounds.top, line.bounds.bottom);
    lines.sort_by(|a, b| center(a).total_cmp(&center(b)));
    let mut rows: Vec<Vec<Line>> = Vec::new();
    for line in lines {
        match rows.last_mut() {
            Some(row)
                if row.first().is_some_and(|first| {
                    center(&line) - center(first) < 0.5 * first.height().min(line.height())
                }) =>
            {
                row.push(line);
            }
            _ => rows.push(vec![line]),
        }
    }
    let mut paragraph: Vec<String> = Vec::new();
    let mut bottom = f32::MIN;
    for mut row in rows {
        row.sort_by(|a, b| a.bounds.left.total_cmp(&b.bounds.left));
        let top = row.iter().map(|line| line.bounds.top).fold(f32::MAX, f32::min);
        let height = row.iter().map(Line::height).fold(f32::MAX, f32::min);
        if top - bottom > APART * height && !paragraph.is_empty() {
            done.push(std::mem::take(&mut paragraph).join("\n"));
        }
        bottom = row.iter().map(|line| line.bounds.bottom).fold(f32::MIN, f32::max);
        let texts: Vec<&str> = row.iter().map(|line| line.text.as_str()).collect();
        paragraph.push(texts.join(" "));
    }
    if !paragraph.is_empty() {
        done.push(paragraph.join("\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, left: f32, top: f32, width: f32) -> Line {
        let bounds = Bounds {
            left,
            top,
            right: left + width,
            bottom: top + 10.0,
        };
        Line {
            bounds,
            text: text.into(),
        }
    }

    #[test]
    fn labels_and_values_stay_in_their_rows() {
        let lines = vec![
            line("10.03.2020", 200.0, 1.0, 60.0),
            line("Date", 0.0, 0.0, 40.0),
            line("Total", 0.0, 12.0, 40.0),
            line("19 EUR", 200.0, 12.0, 60.0),
            line("Thank you", 0.0, 60.0, 90.0),
        ];
        assert_eq!(paragraphs(lines), ["Date 10.03.2020\nTotal 19 EUR", "Thank you"]);
    }

    #[test]
    fn columns_of_prose_are_read_one_after_the_other() {
        let mut lines = vec![line("title", 50.0, 0.0, 120.0)];
        for row in 0..8 {
            let top = 20.0 + 12.0 * row as f32;
            lines.push(line(&format!("r{row}"), 110.0, top, 100.0));
            lines.push(line(&format!("l{row}"), 0.0, top, 100.0));
        }
        let text = paragraphs(lines).join("\n");
        assert_eq!(
            text,
            "title\nl0\nl1\nl2\nl3\nl4\nl5\nl6\nl7\nr0\nr1\nr2\nr3\nr4\nr5\nr6\nr7"
        );
    }
}

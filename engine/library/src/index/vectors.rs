//! Vectors in memory for exact search: binary16, one after the other. What the database got meanwhile is added before each
//! search; when something was erased there, all are loaded anew.

use std::collections::HashSet;

use reprise_kernels::encoder::dot_f16;
use reprise_kernels::half::f32_to_f16;
use reprise_kernels::isa::Isa;
use rusqlite::Connection;

use super::rows::Content;

/// Rows that are multiplied at once.
const ROWS: usize = 256;

#[derive(Default)]
pub(super) struct Vectors {
    contents: Vec<Content>,
    halves: Vec<u16>,
    dimensions: usize,
    last_number: i64,
    erasures: i64,
}

/// A vector as it is kept.
pub(super) fn packed(vector: &[f32]) -> Vec<u8> {
    vector
        .iter()
        .flat_map(|&value| f32_to_f16(value).to_le_bytes())
        .collect()
}

impl Vectors {
    /// Takes what the database got since.
    pub(super) fn refresh(&mut self, connection: &Connection, dimensions: usize) -> rusqlite::Result<()> {
        let erasures = connection
            .prepare_cached("SELECT value FROM counters WHERE name = 'vectors_erased'")?
            .query_row([], |row| row.get(0))?;
        if erasures != self.erasures || dimensions != self.dimensions {
            *self = Vectors {
                erasures,
                dimensions,
                ..Vectors::default()
            };
        }
        let mut statement = connection.prepare_cached(
            "SELECT number, content, vector FROM vectors WHERE number > ?1 ORDER BY number",
        )?;
        let mut rows = statement.query([self.last_number])?;
        while let Some(row) = rows.next()? {
            self.last_number = row.get(0)?;
            let bytes = row.get_ref(2)?.as_blob()?;
            // One of another length was not made by this model.
            if bytes.len() == 2 * dimensions {
                self.contents.push(row.get(1)?);
                self.halves.extend(
                    bytes
                        .as_chunks::<2>()
                        .0
                        .iter()
                        .map(|two| u16::from_le_bytes(*two)),
                );
            }
        }
        Ok(())
    }

    /// The contents nearest to a vector, nearest first; among these only, where some are named.
    pub(super) fn nearest(
        &self,
        vector: &[f32],
        among: Option<&HashSet<Content>>,
        limit: usize,
    ) -> Vec<(Content, f32)> {
        let isa = Isa::best();
        let mut scores = [0.0; ROWS];
        let mut best: Vec<(usize, f32)> = Vec::new();
        let mut least = f32::NEG_INFINITY;
        for (block, rows) in self.halves.chunks(ROWS * self.dimensions.max(1)).enumerate() {
            let count = rows.len() / self.dimensions.max(1);
            dot_f16(isa, vector, rows, &mut scores[..count]);
            for (row, &score) in scores[..count].iter().enumerate() {
                let index = block * ROWS + row;
                if score > least && among.is_none_or(|among| among.contains(&self.contents[index])) {
                    best.push((index, score));
                    // Sorted now and then, so that each score costs little.
                    if best.len() >= 2 * limit.max(ROWS) {
                        least = keep(&mut best, limit);
                    }
                }
            }
        }
        keep(&mut best, limit);
        best.into_iter()
            .map(|(index, score)| (self.contents[index], score))
            .collect()
    }
}

/// Keeps the best, best first, and gives the least that others have to exceed.
fn keep(best: &mut Vec<(usize, f32)>, limit: usize) -> f32 {
    best.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    best.truncate(limit);
    if best.len() == limit {
        best.last().map_or(f32::NEG_INFINITY, |last| last.1)
    } else {
        f32::NEG_INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_nearest_are_those_of_a_full_sort(values in prop::collection::vec(-8i8..8, 8..4000), limit in 1usize..20) {
            let halves: Vec<u16> = values.iter().map(|&v| f32_to_f16(f32::from(v))).collect();
            let count = halves.len() / 4;
            let contents = (0..count as u128).map(u128::to_le_bytes).collect();
            let vectors =
                Vectors { contents, halves: halves[..count * 4].to_vec(), dimensions: 4, ..Vectors::default() };
            let query = [1.0, -2.0, 0.5, 3.0];
            let mut all: Vec<(usize, f32)> = (0..count)
                .map(|i| (i, (0..4).map(|d| f32::from(values[i * 4 + d]) * query[d]).sum()))
                .collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let found: Vec<f32> = vectors.nearest(&query, None, limit).into_iter().map(|(_, score)| score).collect();
            let expected: Vec<f32> = all.iter().take(limit).map(|(_, score)| *score).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

//! Our side of a measurement.

use std::time::Instant;

use reprise_engine::Engine;
use reprise_engine::backend::{GraphCall, GraphKind, Outputs};

use super::{Test, Work};
use crate::failure::Outcome;

/// A test made ready: with the tokens of its depth in the window.
pub struct Ours<'a> {
    engine: &'a mut Engine,
    test: Test,
    tokens: Vec<u32>,
}

impl<'a> Ours<'a> {
    /// Reads the depth's tokens.
    pub fn new(engine: &'a mut Engine, test: Test) -> Outcome<Ours<'a>> {
        let vocabulary = engine.tokenizer().vocab_size() as u32;
        // Arbitrary tokens, the same in every run.
        let mut state = 42u32;
        let tokens = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % vocabulary
        })
        .take(test.depth + test.tokens())
        .collect();
        let mut ours = Ours { engine, test, tokens };
        ours.read(0, test.depth)?;
        Ok(ours)
    }

    /// Runs some of the work unmeasured, as llama-bench does before it measures: after the peer's turn caches and
    /// sleeping threads are cold.
    pub fn warm_up(&mut self) -> Outcome {
        let (start, end) = (self.test.depth, self.tokens.len());
        match self.test.work {
            Work::Prompt(_) => self.read(start, end.min(start + 512)),
            Work::Generate(_) => self.write(start, end.min(start + 2)),
        }
    }

    /// Does the work once; returns tokens a second.
    pub fn measure(&mut self) -> Outcome<f64> {
        let (start, end) = (self.test.depth, self.tokens.len());
        let begin = Instant::now();
        match self.test.work {
            Work::Prompt(_) => self.read(start, end)?,
            Work::Generate(_) => self.write(start, end)?,
        }
        Ok(self.test.tokens() as f64 / begin.elapsed().as_secs_f64())
    }

    fn read(&mut self, start: usize, end: usize) -> Outcome {
        let (backend, kv) = self.engine.parts_mut();
        let capacity = backend.capacity(GraphKind::Prefill);
        for at in (start..end).step_by(capacity) {
            let stop = (at + capacity).min(end);
            let outputs = if stop == end { Outputs::Last } else { Outputs::None };
            let tokens = &self.tokens[at..stop];
            backend.run(
                &GraphCall {
                    kind: GraphKind::Prefill,
                    tokens,
                    start: at,
                    outputs,
                },
                kv,
            )?;
        }
        Ok(())
    }

    fn write(&mut self, start: usize, end: usize) -> Outcome {
        let (backend, kv) = self.engine.parts_mut();
        for at in start..end {
            let tokens = &self.tokens[at..=at];
            backend.run(
                &GraphCall {
                    kind: GraphKind::Decode,
                    tokens,
                    start: at,
                    outputs: Outputs::Last,
                },
                kv,
            )?;
        }
        Ok(())
    }
}

//! Our side of a measurement.

use std::time::Instant;

use reprise_engine::backend::{GraphCall, GraphKind, Outputs, Stretch};
use reprise_engine::worker::{LANES, Worker};

use super::{Test, Work};
use crate::failure::Outcome;

/// A test on a worker: each of its lanes has the tokens of the test's depth in its window.
pub struct Ours<'a> {
    worker: &'a mut Worker,
    test: Test,
    tokens: Vec<u32>,
}

impl<'a> Ours<'a> {
    pub fn new(worker: &'a mut Worker, test: Test) -> Outcome<Ours<'a>> {
        let vocabulary = worker.tokenizer().vocab_size() as u32;
        // Arbitrary tokens, the same in every run.
        let mut state = 42u32;
        let tokens = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % vocabulary
        })
        .take(test.depth + test.tokens())
        .collect();
        Ok(Ours { worker, test, tokens })
    }

    /// Reads the depth's tokens into every lane: once, and the others share its pages.
    pub fn fill(&mut self) -> Outcome {
        self.clear();
        self.read(0, self.test.depth)?;
        let (_, kv) = self.worker.parts_mut();
        for lane in 1..self.test.lanes {
            kv.sequences[lane] = kv.sequences[0].fork(self.test.depth);
        }
        Ok(())
    }

    /// Gives all pages back.
    pub fn clear(&mut self) {
        let (_, kv) = self.worker.parts_mut();
        for sequence in kv.sequences {
            sequence.truncate(0);
            sequence.cancel();
        }
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

    /// Does the work once; returns tokens a second over all lanes.
    pub fn measure(&mut self) -> Outcome<f64> {
        let (start, end) = (self.test.depth, self.tokens.len());
        let begin = Instant::now();
        match self.test.work {
            Work::Prompt(_) => self.read(start, end)?,
            Work::Generate(_) => self.write(start, end)?,
        }
        Ok((self.test.tokens() * self.test.lanes) as f64 / begin.elapsed().as_secs_f64())
    }

    fn read(&mut self, start: usize, end: usize) -> Outcome {
        let (backend, mut kv) = self.worker.parts_mut();
        kv.sequences[0].truncate(start);
        let capacity = backend.capacity(GraphKind::Prefill);
        for at in (start..end).step_by(capacity) {
            let stop = (at + capacity).min(end);
            kv.sequences[0].prepare(stop, None)?;
            let stretches = [Stretch::new(0, at, &self.tokens[at..stop])];
            let outputs = if stop == end { Outputs::Last } else { Outputs::None };
            let call = GraphCall {
                kind: GraphKind::Prefill,
                stretches: &stretches,
                outputs,
            };
            backend.run(&call, &mut kv)?;
            kv.sequences[0].commit(stop);
        }
        Ok(())
    }

    fn write(&mut self, start: usize, end: usize) -> Outcome {
        let (backend, mut kv) = self.worker.parts_mut();
        let lanes = self.test.lanes;
        for sequence in &mut kv.sequences[..lanes] {
            sequence.truncate(start);
        }
        for at in start..end {
            for sequence in &mut kv.sequences[..lanes] {
                sequence.prepare(at + 1, None)?;
            }
            let stretches: [Stretch<'_>; LANES] =
                std::array::from_fn(|sequence| Stretch::new(sequence, at, &self.tokens[at..=at]));
            let call = GraphCall {
                kind: GraphKind::Decode,
                stretches: &stretches[..lanes],
                outputs: Outputs::Last,
            };
            backend.run(&call, &mut kv)?;
            for sequence in &mut kv.sequences[..lanes] {
                sequence.commit(at + 1);
            }
        }
        Ok(())
    }
}

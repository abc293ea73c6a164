//! Chunks on their way into a sequence, layer by layer: a thread reads and turns what the next layers need while the
//! engine computes the layers before.

use super::chunk::Loading;
use super::find::Use;
use super::{Keeper, Shared};
use crate::api::{Spent, Steps};
use reprise_kernels::isa::Isa;
use reprise_kv::pool::Sequence;
use reprise_kv::store::ChunkId;
use reprise_kv::{Arrivals, LayerLayout, Lost};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is to be loaded, and where it goes.
#[derive(Debug)]
pub(super) struct FetchJob {
    parts: Vec<Use>,
    to: Sender<News>,
}

#[derive(Debug)]
enum News {
    /// The next shard of the next part; all parts of a shard come before the next shard.
    Shard {
        /// Tokens of the chunk.
        tokens: usize,
        bytes: Arc<Vec<u8>>,
        loading: Duration,
        turning: Duration,
    },
    Lost {
        chunk: ChunkId,
        reason: String,
    },
}

/// Chunks on their way into a sequence. See the module.
#[derive(Debug)]
pub struct Fetch {
    sequence: usize,
    parts: Vec<Use>,
    /// Never locked: the mutex lets it be seen from the threads of a call.
    from: Mutex<Receiver<News>>,
    shards: Vec<Range<usize>>,
    /// Shards of which all parts are here; of the last one its bytes, and how many tokens their chunks have.
    arrived: usize,
    bytes: Vec<(usize, Arc<Vec<u8>>)>,
    /// Layers that are in the sequence.
    placed: usize,
    loading: Duration,
    turning: Duration,
    placing: Duration,
    waited: Duration,
    lost: Option<ChunkId>,
}

impl Keeper {
    /// Begins to load chunks, or parts of them, turned to where they are needed, into the sequence of this number, whose
    /// positions there are prepared. They arrive by [`Arrivals::arrive`].
    pub fn fetch(&self, parts: Vec<Use>, sequence: usize) -> Fetch {
        let (to, from) = channel();
        let job = FetchJob {
            parts: parts.clone(),
            to,
        };
        // Where the thread is gone nothing comes, and the first wait says so.
        let _ = self.fetches.as_ref().map(|fetches| fetches.send(job));
        Fetch {
            sequence,
            parts,
            from: Mutex::new(from),
            shards: self.shared.shards.clone(),
            arrived: 0,
            bytes: Vec::new(),
            placed: 0,
            loading: Duration::ZERO,
            turning: Duration::ZERO,
            placing: Duration::ZERO,
            waited: Duration::ZERO,
            lost: None,
        }
    }
}

impl Fetch {
    /// Whether everything is in its place.
    pub fn is_done(&self) -> bool {
        self.placed == self.shards.last().map_or(0, |layers| layers.end)
    }

    /// The chunk that could not be had, if there was one.
    pub fn lost(&self) -> Option<ChunkId> {
        self.lost
    }

    /// How long the engine's thread was kept from computing so far.
    pub fn held_up(&self) -> Duration {
        self.waited + self.placing
    }

    /// Adds what loading and turning took, and how much of it nobody waited for.
    pub fn add_to(&self, steps: &mut Steps) {
        let add = |to: &mut Spent, taken: Duration, waited: Duration| {
            to.taken += taken;
            to.hidden += taken.saturating_sub(waited);
        };
        // A wait is for what is read and turned by turns: each has its share of it.
        let beside = self.loading + self.turning;
        let share = |of: Duration| match beside.is_zero() {
            true => Duration::ZERO,
            false => self.waited.mul_f64(of.as_secs_f64() / beside.as_secs_f64()),
        };
        add(&mut steps.loading, self.loading, share(self.loading));
        add(&mut steps.turning, self.turning, share(self.turning));
        add(&mut steps.turning, self.placing, self.placing);
    }

    /// Waits for the next shard of all parts.
    fn wait(&mut self) -> Result<(), Lost> {
        self.bytes.clear();
        let begin = Instant::now();
        let from = self.from.get_mut().unwrap_or_else(PoisonError::into_inner);
        while self.bytes.len() < self.parts.len() {
            match from.recv() {
                Ok(News::Shard {
                    tokens,
                    bytes,
                    loading,
                    turning,
                }) => {
                    self.bytes.push((tokens, bytes));
                    self.loading += loading;
                    self.turning += turning;
                }
                Ok(News::Lost { chunk, reason }) => {
                    self.lost = Some(chunk);
                    return Err(Lost { reason });
                }
                Err(_) => {
                    self.lost = self.parts.first().map(|part| part.chunk);
                    return Err(Lost {
                        reason: "the thread that loads chunks has ended".to_owned(),
                    });
                }
            }
        }
        self.waited += begin.elapsed();
        self.arrived += 1;
        Ok(())
    }

    fn place(&mut self, layer: usize, layouts: &[LayerLayout], sequence: &mut Sequence) {
        let (begin, isa) = (Instant::now(), Isa::best());
        let first = self.shards[self.arrived - 1].start;
        for (part, (tokens, bytes)) in self.parts.iter().zip(&self.bytes) {
            let start = tokens * LayerLayout::token_bytes_of(&layouts[first..layer]);
            let bytes = &bytes[start..start + tokens * layouts[layer].token_bytes()];
            layouts[layer].place(isa, sequence, layer, part.at, bytes, *tokens, part.of.clone());
        }
        self.placing += begin.elapsed();
    }
}

impl Arrivals for Fetch {
    fn arrive(
        &mut self,
        layer: usize,
        layouts: &[LayerLayout],
        sequences: &mut [Sequence],
    ) -> Result<(), Lost> {
        while self.placed <= layer && !self.is_done() {
            if self.arrived == 0 || self.placed >= self.shards[self.arrived - 1].end {
                self.wait()?;
            }
            self.place(self.placed, layouts, &mut sequences[self.sequence]);
            self.placed += 1;
        }
        if self.is_done() {
            self.bytes.clear();
        }
        Ok(())
    }
}

impl Shared {
    /// The loading thread's life.
    pub(super) fn serve_fetches(&self, jobs: &Receiver<FetchJob>) {
        while let Ok(job) = jobs.recv() {
            self.serve_fetch(&job);
        }
    }

    /// Who waits may have left: then there is nobody to tell, and the rest is not loaded.
    fn serve_fetch(&self, job: &FetchJob) {
        let mut all: Vec<Option<Loading>> = job.parts.iter().map(|_| None).collect();
        for shard in 0..self.shards.len() {
            for (part, loading) in job.parts.iter().zip(&mut all) {
                let begin = Instant::now();
                let bytes = (|| {
                    let loading = match loading {
                        Some(loading) => loading,
                        None => loading.insert(self.open(part)?),
                    };
                    let bytes = self.next_shard(loading, shard)?;
                    let loaded = begin.elapsed();
                    let bytes = self.turn_shard(loading, shard, bytes);
                    Ok(News::Shard {
                        tokens: loading.tokens,
                        bytes,
                        loading: loaded,
                        turning: begin.elapsed().saturating_sub(loaded),
                    })
                })();
                let news = bytes.unwrap_or_else(|error: reprise_kv::store::StoreError| News::Lost {
                    chunk: part.chunk,
                    reason: error.to_string(),
                });
                let is_lost = matches!(news, News::Lost { .. });
                if job.to.send(news).is_err() || is_lost {
                    return;
                }
            }
        }
        for loading in all.into_iter().flatten() {
            self.keep_loaded(loading);
        }
    }
}

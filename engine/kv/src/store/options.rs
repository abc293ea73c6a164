//! How a store is set up.

use super::policy::Costs;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Settings of a [`ChunkStore`](super::ChunkStore).
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The most bytes that chunks may have together; the index, about 2 KB a chunk, comes on top. Default: 8 GiB.
    pub budget_bytes: u64,
    /// Chunks of at most so many bytes stand in the index and get no file of their own: a file costs more than they
    /// are worth. Default: 96 KiB.
    pub small_bytes: u64,
    /// The time after which a use of a chunk weighs half. Default: one day.
    pub half_life: Duration,
    /// What computing a chunk again costs: decides, with its uses, which are evicted first.
    pub costs: Costs,
    /// How many chunks are compared with a prompt when runs of tokens are looked for. Default: 64.
    pub run_candidates: usize,
    /// How long to wait when another program holds the index. Default: two seconds.
    pub busy_timeout: Duration,
    /// Where the time comes from. Default: the system.
    pub clock: Clock,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            budget_bytes: 8 << 30,
            small_bytes: 96 << 10,
            half_life: Duration::from_secs(24 * 3_600),
            costs: Costs::default(),
            run_candidates: 64,
            busy_timeout: Duration::from_secs(2),
            clock: Clock::default(),
        }
    }
}

/// A source of the time. It may jump back: see [`UseRecord`](super::policy::UseRecord).
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// A clock that asks `now_ms` for the milliseconds since 1970.
    pub fn new(now_ms: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now_ms))
    }

    pub(super) fn now_ms(&self) -> i64 {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

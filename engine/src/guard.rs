//! The watch over memory: what this process takes, what the machine has left, and how hard the system has to work for it.
//!
//! New work is refused before the limit is reached, with the reason; before that, what can be made again is let go.
//! Figures come from the system through `sysinfo`; stalls for memory (PSI) only Linux tells. Where a figure is missing,
//! the guard does without it and the snapshot says so.

use crate::units::megabytes;
use std::time::{Duration, Instant};
use sysinfo::{MemoryRefreshKind, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System};

/// Share of the machine's memory this process may take where nothing is said.
const LIMIT_SHARE: f64 = 0.8;
/// Free memory below which nothing new begins, as a share of the machine's.
const LEAST_FREE_SHARE: f64 = 0.03;
/// From this share of the limit on, kept work is let go.
const TIGHT_SHARE: f64 = 0.9;
/// Share of the last ten seconds in which some task stood still for want of memory, from which on kept work is let go;
/// and from which on nothing new begins. An idle machine shows zero, one that swaps tens of percent.
const TIGHT_STALL: f64 = 5.0;
const SHORT_STALL: f64 = 40.0;
/// Figures are read at most this often.
const INTERVAL: Duration = Duration::from_millis(250);

/// What was measured last. Bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Footprint {
    /// Resident memory of this process; `None` where the system does not say.
    pub resident_bytes: Option<u64>,
    /// What this process may take.
    pub limit_bytes: u64,
    /// Memory that programs can still have.
    pub available_bytes: u64,
    /// The machine's memory.
    pub total_bytes: u64,
    /// Percent of the last ten seconds in which some task waited for memory; `None` off Linux.
    pub stalled_percent: Option<f64>,
}

/// How memory stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pressure {
    /// There is enough.
    None,
    /// What can be made again should be let go.
    Tight,
    /// Nothing new may begin, and why.
    Short(String),
}

/// Reads the figures and judges them.
pub struct Guard {
    /// None where the system gives no figures.
    system: Option<System>,
    limit: Option<u64>,
    last: Footprint,
    read_at: Option<Instant>,
    /// Stands in for the system in tests.
    fixed: Option<Footprint>,
}

impl Guard {
    /// A guard with a limit of its own, or one from the machine's memory.
    pub fn new(limit: Option<u64>) -> Guard {
        let kinds = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let mut guard = Guard {
            system: System::new_with_specifics(kinds).ok(),
            limit,
            last: Footprint::default(),
            read_at: None,
            fixed: None,
        };
        guard.read();
        guard
    }

    /// What was measured last.
    pub fn footprint(&self) -> Footprint {
        self.last
    }

    /// Shows the guard these figures instead of the system's, for tests of what follows from them.
    #[doc(hidden)]
    pub fn fix(&mut self, footprint: Option<Footprint>) {
        self.fixed = footprint;
        self.read();
    }

    /// Reads the figures again when they are old; returns whether it did.
    pub fn poll(&mut self) -> bool {
        if self.read_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return false;
        }
        self.read();
        true
    }

    fn read(&mut self) {
        self.read_at = Some(Instant::now());
        if let Some(fixed) = self.fixed {
            self.last = fixed;
            return;
        }
        let Some(system) = &mut self.system else {
            self.last = Footprint {
                limit_bytes: self.limit.unwrap_or(u64::MAX),
                ..Footprint::default()
            };
            return;
        };
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let resident_bytes = sysinfo::get_current_pid().ok().and_then(|pid| {
            let kind = ProcessRefreshKind::nothing().with_memory();
            let _ = system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
            system.process(pid).map(sysinfo::Process::memory)
        });
        let total_bytes = system.total_memory();
        self.last = Footprint {
            resident_bytes,
            limit_bytes: self.limit.unwrap_or((total_bytes as f64 * LIMIT_SHARE) as u64),
            available_bytes: system.available_memory(),
            total_bytes,
            stalled_percent: stalled_percent(),
        };
    }

    /// How memory stands when `wanted` more bytes are taken.
    pub fn pressure(&self, wanted: u64) -> Pressure {
        let Footprint {
            resident_bytes,
            limit_bytes,
            available_bytes,
            total_bytes,
            stalled_percent,
        } = self.last;
        let stalled = stalled_percent.unwrap_or(0.0);
        let taken = resident_bytes.unwrap_or(0) + wanted;
        let least_free = (total_bytes as f64 * LEAST_FREE_SHARE) as u64;
        if taken > limit_bytes {
            return Pressure::Short(format!(
                "this would bring the program to {} of memory, and its limit is {}",
                megabytes(taken),
                megabytes(limit_bytes)
            ));
        }
        if total_bytes > 0 && available_bytes < least_free.saturating_add(wanted) {
            return Pressure::Short(match wanted {
                0 => format!(
                    "the machine has {} free, and {} stay free for other programs",
                    megabytes(available_bytes),
                    megabytes(least_free)
                ),
                _ => format!(
                    "the machine has {} free, {} stay free for other programs, and this takes {}",
                    megabytes(available_bytes),
                    megabytes(least_free),
                    megabytes(wanted)
                ),
            });
        }
        if stalled >= SHORT_STALL {
            return Pressure::Short(format!(
                "programs waited for memory {stalled:.0} % of the last ten seconds"
            ));
        }
        let tight = taken as f64 > limit_bytes as f64 * TIGHT_SHARE
            || available_bytes < least_free.saturating_mul(2).saturating_add(wanted) && total_bytes > 0
            || stalled >= TIGHT_STALL;
        if tight { Pressure::Tight } else { Pressure::None }
    }
}

/// Percent of the last ten seconds in which some task waited for memory.
fn stalled_percent() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/pressure/memory").ok()?;
    parse_stalled(&text)
}

fn parse_stalled(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let value = line
        .split_whitespace()
        .find_map(|part| part.strip_prefix("avg10="))?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(footprint: Footprint) -> Guard {
        let mut guard = Guard::new(None);
        guard.fix(Some(footprint));
        guard
    }

    const CALM: Footprint = Footprint {
        resident_bytes: Some(1_000_000_000),
        limit_bytes: 4_000_000_000,
        available_bytes: 8_000_000_000,
        total_bytes: 16_000_000_000,
        stalled_percent: Some(0.0),
    };

    #[test]
    fn work_is_refused_before_the_limit_with_the_numbers() {
        let guard = guard(CALM);
        assert_eq!(guard.pressure(1_000_000_000), Pressure::None);
        assert_eq!(guard.pressure(2_700_000_000), Pressure::Tight);
        match guard.pressure(3_500_000_000) {
            Pressure::Short(reason) => {
                assert!(
                    reason.contains("4500 MB") && reason.contains("4000 MB"),
                    "{reason}"
                );
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_full_machine_and_stalls_count_too() {
        let low = Footprint {
            available_bytes: 700_000_000,
            ..CALM
        };
        assert_eq!(guard(low).pressure(0), Pressure::Tight);
        assert!(matches!(guard(low).pressure(500_000_000), Pressure::Short(_)));
        let stalled = Footprint {
            stalled_percent: Some(50.0),
            ..CALM
        };
        assert!(matches!(guard(stalled).pressure(0), Pressure::Short(_)));
        let unknown = Footprint {
            resident_bytes: None,
            stalled_percent: None,
            ..CALM
        };
        assert_eq!(guard(unknown).pressure(0), Pressure::None);
    }

    #[test]
    fn the_systems_figures_are_read() {
        let footprint = Guard::new(Some(123)).footprint();
        assert_eq!(footprint.limit_bytes, 123);
        assert!(footprint.total_bytes > 0);
        #[cfg(target_os = "linux")]
        assert!(footprint.resident_bytes.is_some_and(|bytes| bytes > 100_000));
        let text = "some avg10=1.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(parse_stalled(text), Some(1.5));
        assert_eq!(parse_stalled("rubbish"), None);
    }
}

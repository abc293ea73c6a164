//! Whether the machine runs on battery: work that can wait does then.

use std::time::{Duration, Instant};

/// The system is asked at most this often.
const INTERVAL: Duration = Duration::from_secs(5);

/// A watch over the machine's power.
#[derive(Debug, Default)]
pub struct Power {
    last: Option<(Instant, bool)>,
}

impl Power {
    /// Whether a battery is being drained. Where the system does not say, or there is none, no.
    pub fn is_on_battery(&mut self) -> bool {
        match self.last {
            Some((at, answer)) if at.elapsed() < INTERVAL => answer,
            _ => {
                let answer = ask().unwrap_or_else(|error| {
                    tracing::debug!(%error, "the system does not tell about its power");
                    false
                });
                self.last = Some((Instant::now(), answer));
                answer
            }
        }
    }
}

fn ask() -> Result<bool, starship_battery::Error> {
    for battery in starship_battery::Manager::new()?.batteries()? {
        if battery?.state() == starship_battery::State::Discharging {
            return Ok(true);
        }
    }
    Ok(false)
}

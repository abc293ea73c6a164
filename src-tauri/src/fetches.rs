//! Models that are being fetched, each on a thread of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use reprise_engine::CancelToken;
use reprise_library::models::Shelf;
use reprise_library::models::catalogue;
use reprise_library::models::fetch::{FetchError, fetch};

use crate::events::Events;
use crate::types::{AppEvent, Failure, Fetching};

/// The page hears of progress this often at most.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// The models that are being fetched.
pub struct Fetches {
    events: Events,
    running: Arc<Mutex<HashMap<String, CancelToken>>>,
}

fn lock(running: &Mutex<HashMap<String, CancelToken>>) -> MutexGuard<'_, HashMap<String, CancelToken>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fetches {
    /// None yet.
    pub fn new(events: Events) -> Fetches {
        Fetches {
            events,
            running: Arc::default(),
        }
    }

    /// Begins to fetch a model of the catalogue, unless it is being fetched already.
    ///
    /// # Errors
    /// When there is no such model, none that can be fetched, or no thread for it.
    pub fn begin(&self, shelf: &Shelf, id: &str) -> Result<(), Failure> {
        let entry = catalogue::entries()?.into_iter().find(|entry| entry.name == id);
        let Some((entry, url)) = entry.and_then(|entry| entry.url().map(|url| (entry, url))) else {
            return Err(Failure::new(format!(
                "{id} is no model that can be fetched from here"
            )));
        };
        let cancel = CancelToken::default();
        {
            let mut running = lock(&self.running);
            if running.contains_key(id) {
                return Ok(());
            }
            running.insert(id.to_owned(), cancel.clone());
        }
        let (events, running, id) = (self.events.clone(), Arc::clone(&self.running), id.to_owned());
        let to = shelf.place_of(&entry);
        let at_end = Arc::clone(&self.running);
        let name = id.clone();
        let work = move || {
            let mut last = Fetching {
                id: id.clone(),
                done_bytes: 0,
                total_bytes: None,
                is_ended: false,
                trouble: None,
            };
            let mut told: Option<Instant> = None;
            let outcome = fetch(&url, &to, entry.sha256.as_deref(), &cancel, &mut |done, total| {
                last.done_bytes = done;
                last.total_bytes = total;
                if told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
                    told = Some(Instant::now());
                    events.tell(AppEvent::Fetching {
                        fetching: last.clone(),
                    });
                }
            });
            lock(&running).remove(&id);
            last.is_ended = true;
            last.trouble = match outcome {
                // The person knows.
                Ok(()) | Err(FetchError::Stopped) => None,
                Err(error) => Some(error.to_string()),
            };
            events.tell(AppEvent::Fetching { fetching: last });
        };
        let started = thread::Builder::new().name("fetch".into()).spawn(work);
        if let Err(error) = started {
            lock(&at_end).remove(&name);
            return Err(error.into());
        }
        Ok(())
    }

    /// Stops fetching a model; what is here of it stays.
    pub fn stop(&self, id: &str) {
        if let Some(cancel) = lock(&self.running).get(id) {
            cancel.cancel();
        }
    }

    /// Stops all.
    pub fn quit(&self) {
        for cancel in lock(&self.running).values() {
            cancel.cancel();
        }
    }
}

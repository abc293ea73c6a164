//! The engine's pictures of itself on their way to the page: looked at ten times a second while anything runs, told when
//! they are new. The engine counts; nothing here does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use reprise_engine::snapshot::Snapshot;

use crate::events::Events;
use crate::types::AppEvent;

/// How often the page gets a picture at most, and how often one is looked for while the engine works.
const BUSY_INTERVAL: Duration = Duration::from_millis(100);
/// How often one is looked for else: the machine's memory changes by itself.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// Where the engine leaves its latest picture.
type Place = Arc<Mutex<Snapshot>>;

/// The pictures of the engine that is loaded.
#[derive(Default)]
pub struct Pictures {
    album: Mutex<Album>,
    stirred: Condvar,
}

#[derive(Default)]
struct Album {
    place: Option<Place>,
    /// Counts the engines: each begins its own sequence of pictures.
    engines: u64,
    /// Whether something happened since the last look.
    is_stirred: bool,
}

impl Pictures {
    /// Starts the thread that tells the page.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(events: Events) -> std::io::Result<Arc<Pictures>> {
        let pictures = Arc::new(Pictures::default());
        let watched = Arc::clone(&pictures);
        thread::Builder::new()
            .name("pictures".into())
            .spawn(move || watched.tell_what_is_new(&events))?;
        Ok(pictures)
    }

    /// From now on the pictures are this engine's; none when no model is loaded.
    pub fn show(&self, place: Option<Place>) {
        let mut album = self.lock();
        album.place = place;
        album.engines += 1;
        album.is_stirred = true;
        self.stirred.notify_one();
    }

    /// Something happens: a new picture will come soon.
    pub fn stir(&self) {
        self.lock().is_stirred = true;
        self.stirred.notify_one();
    }

    /// The latest picture.
    pub fn latest(&self) -> Option<Snapshot> {
        let place = self.lock().place.clone();
        place.map(|place| copy(&place))
    }

    fn lock(&self) -> MutexGuard<'_, Album> {
        // Changed by single assignments: whole after any panic.
        self.album.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_what_is_new(&self, events: &Events) {
        let mut told = (0, None);
        // Whether to look again without waiting for something to happen: a picture comes a little after what it shows.
        let mut looks_again = false;
        loop {
            let mut album = self.lock();
            if !looks_again {
                let is_calm = |album: &mut Album| !album.is_stirred;
                let (woken, _) = self
                    .stirred
                    .wait_timeout_while(album, IDLE_INTERVAL, is_calm)
                    .unwrap_or_else(PoisonError::into_inner);
                album = woken;
            }
            let was_stirred = std::mem::take(&mut album.is_stirred);
            let (place, engine) = (album.place.clone(), album.engines);
            drop(album);
            let snapshot = place.map(|place| copy(&place));
            let seen = (engine, snapshot.as_ref().map(|snapshot| snapshot.sequence));
            let is_new = seen != told;
            if is_new {
                told = seen;
                events.tell(AppEvent::Snapshot {
                    snapshot: snapshot.map(Box::new),
                });
            }
            looks_again = is_new || was_stirred;
            thread::sleep(BUSY_INTERVAL);
        }
    }
}

fn copy(place: &Place) -> Snapshot {
    place.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tauri::ipc::{Channel, InvokeResponseBody};

    #[test]
    fn the_page_gets_the_latest_picture_and_never_more_than_ten_a_second() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let page = Arc::clone(&told);
        let events = Events::start().unwrap();
        events.connect(Channel::new(move |body| {
            let InvokeResponseBody::Json(json) = body else {
                panic!("events are JSON");
            };
            let list: serde_json::Value = serde_json::from_str(&json).unwrap();
            page.lock().unwrap().extend(list.as_array().unwrap().clone());
            Ok(())
        }));
        let pictures = Pictures::start(events).unwrap();
        let place = Place::default();
        pictures.show(Some(Arc::clone(&place)));
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(600) {
            place.lock().unwrap().sequence += 1;
            pictures.stir();
            thread::sleep(Duration::from_millis(3));
        }
        let latest = place.lock().unwrap().sequence;
        assert_eq!(pictures.latest().unwrap().sequence, latest);
        let sequences = || -> Vec<u64> {
            let told = told.lock().unwrap();
            (told.iter().filter(|event| !event["snapshot"].is_null()))
                .map(|event| event["snapshot"]["sequence"].as_u64().unwrap())
                .collect()
        };
        while sequences().last() != Some(&latest) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", sequences());
            thread::sleep(Duration::from_millis(5));
        }
        let most = begin.elapsed().as_millis() / 100 + 2;
        let sequences = sequences();
        assert!(
            sequences.len() >= 2 && sequences.len() as u128 <= most,
            "{sequences:?}"
        );
        assert!(
            sequences.is_sorted_by(|earlier, later| earlier < later),
            "{sequences:?}"
        );
        pictures.show(None);
        while !told.lock().unwrap().last().unwrap()["snapshot"].is_null() {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "the model's going is not told"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}

//! What the commands share: the store, the engine's host, the page's events.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use reprise_engine::tune::store as profile;
use reprise_library::cache::Cache;
use reprise_library::chats::ChatStore;
use reprise_library::converse::WINDOW_SETTINGS;
use reprise_library::folders;
use reprise_library::models::{ModelsError, Shelf};
use reprise_model::gguf::Gguf;

use crate::documents::{Documents, Folders};
use crate::events::Events;
use crate::fetches::Fetches;
use crate::host::{Host, LoadRequest};
use crate::platform;
use crate::types::{AppEvent, Failure, Settings};

/// Chats deleted longer ago than this are erased at the next start; until then they can be brought back.
const DELETED_CHATS_STAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The application's state.
pub struct App {
    /// The chats.
    pub store: Arc<ChatStore>,
    /// The engine.
    pub host: Host,
    /// The page.
    pub events: Events,
    /// The models.
    pub shelf: Shelf,
    /// The documents.
    pub documents: Documents,
    /// Models that are being fetched.
    pub fetches: Fetches,
    /// Where the chats are kept.
    pub data_folder: PathBuf,
    notices: Mutex<Vec<String>>,
    fonts_are_checked: AtomicBool,
    /// Held as long as the program runs: a second one in the same folder would answer the same chats.
    _lock: File,
}

impl App {
    /// Opens the data folder and begins to load the model. `bundled` is where models that came with the program are.
    ///
    /// # Errors
    /// A sentence for the person when the program cannot work at all.
    pub fn open(bundled: Option<PathBuf>) -> Result<App, Failure> {
        let data_folder = folders::data()?;
        let lock = folders::lock(&data_folder)?;
        let (store, mut notices) = ChatStore::open(folders::chats_in(&data_folder))?;
        let store = Arc::new(store);
        let settings = match store.setting(WINDOW_SETTINGS)? {
            None => Settings::default(),
            Some(value) => serde_json::from_value(value).unwrap_or_else(|error| {
                notices.push(format!(
                    "your settings could not be read ({error}); the defaults are in use until you change them"
                ));
                Settings::default()
            }),
        };
        let mut shelf = Shelf::of_machine()?;
        if let Some(folder) = bundled {
            shelf = shelf.with_folder(folder);
        }
        let events = Events::start()?;
        let host = Host::start(Arc::clone(&store), events.clone(), settings)?;
        let documents = Documents::start(Folders::of_person()?, shelf.clone(), host.clone(), events.clone())?;
        let app = App {
            store,
            host,
            fetches: Fetches::new(events.clone()),
            events,
            shelf,
            documents,
            data_folder,
            notices: Mutex::new(notices),
            fonts_are_checked: AtomicBool::new(false),
            _lock: lock,
        };
        app.load_model();
        app.erase_in_background()?;
        Ok(app)
    }

    /// Erases the chats that were deleted long ago, and then what is kept of the texts of chats that are gone. The chats'
    /// file is written anew for that, which takes a while.
    fn erase_in_background(&self) -> std::io::Result<()> {
        let (store, host, events) = (Arc::clone(&self.store), self.host.clone(), self.events.clone());
        let erase = move || {
            if let Err(error) = store.erase_deleted(Some(DELETED_CHATS_STAY_MS)) {
                events.tell(AppEvent::Notice {
                    message: error.to_string(),
                });
            }
            let erased = with_cache(&host, |cache, chats| Ok(cache.erase_chats_that_are_gone(chats)?));
            if let Err(failure) = erased {
                // Another program has it open, perhaps: the next start tries again.
                tracing::warn!(
                    message = failure.message,
                    "what is kept of erased chats is still there"
                );
            }
        };
        thread::Builder::new().name("erase".into()).spawn(erase).map(drop)
    }

    /// Does something with what is kept of the texts that were read; none when nothing is kept yet.
    ///
    /// # Errors
    /// When another program has it open, and the work's own.
    pub fn with_cache<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Cache<'_>, &ChatStore) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        with_cache(&self.host, work)
    }

    /// Begins to load the chosen model.
    pub fn load_model(&self) {
        let settings = self.host.settings();
        let wanted = settings.model.as_deref();
        self.host.load(LoadRequest {
            file: self.shelf.resolve(wanted).map_err(in_words_of_the_window),
            name: self.shelf.title(wanted),
            store: settings.store(),
            settings,
            profiles: folders::profiles().ok(),
            index: folders::index().ok(),
            is_published: true,
        });
    }

    /// Adds a model's file under this name, with a number where it is taken.
    ///
    /// # Errors
    /// When the file is not a model that can be read, or the list cannot be written.
    pub fn add_model(&self, path: &Path, name: &str) -> Result<String, Failure> {
        const MOST_OF_ONE_NAME: usize = 100;
        let stem = name.to_lowercase().replace(['/', '\\', ':'], "-");
        let stem = match stem.split_whitespace().collect::<Vec<_>>().join("-") {
            stem if stem.is_empty() => "model".to_string(),
            stem => stem,
        };
        for number in 1..MOST_OF_ONE_NAME {
            let name = match number {
                1 => stem.clone(),
                number => format!("{stem}-{number}"),
            };
            match self.shelf.add(path, Some(name)) {
                Err(ModelsError::Taken(_)) => {}
                added => return added.map_err(in_words_of_the_window),
            }
        }
        Err(Failure::new(format!(
            "there are too many models named {stem}; rename the file and add it again"
        )))
    }

    /// Forgets what was measured for the model in use and loads it again: it is measured anew while nobody asks for
    /// anything.
    ///
    /// # Errors
    /// When its file cannot be read, or what is stored cannot be removed.
    pub fn tune_model(&self) -> Result<(), Failure> {
        if !folders::tunes_when_idle() {
            return Err(Failure::new(
                "measuring while idle is switched off (REPRISE_TUNE=off); start Reprise without that, or use: reprise \
                 models tune",
            ));
        }
        let settings = self.host.settings();
        let file = self
            .shelf
            .resolve(settings.model.as_deref())
            .map_err(in_words_of_the_window)?;
        profile::forget(&folders::profiles()?, &Gguf::open(&file)?.fingerprint())?;
        self.load_model();
        Ok(())
    }

    /// Erases all chats and folders, all documents with what was read of them, and everything that is kept of texts. Settings,
    /// models and skills stay.
    ///
    /// # Errors
    /// When something cannot be erased; what was erased before stays erased.
    pub fn erase_everything(&self) -> Result<(), Failure> {
        let list = self.store.list()?;
        for chat in &list.chats {
            self.host.stop_chat(chat.id)?;
            self.store.delete_chat(chat.id)?;
        }
        for folder in &list.folders {
            self.store.remove_folder(folder.id)?;
        }
        self.store.set_draft(None, "")?;
        self.store.erase_deleted(None)?;
        self.documents.remove_all()?;
        self.with_cache(|cache, _| Ok(cache.erase_all()?))?;
        Ok(())
    }

    /// Ends what runs beside the page.
    pub fn quit(&self) {
        self.fetches.quit();
        self.documents.leave();
        // Before the documents' thread is waited for: it may wait for what the model's worker does after an answer.
        self.host.quit();
        self.documents.quit();
    }

    /// The model's name, for the turns it writes.
    pub fn model_name(&self) -> String {
        self.host.model().name().to_owned()
    }

    /// Keeps other settings, and loads the model anew when they ask for it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn save_settings(&self, settings: &Settings) -> Result<(), Failure> {
        let earlier = self.host.settings();
        self.store
            .set_setting(WINDOW_SETTINGS, &serde_json::to_value(settings)?)?;
        self.host.set_settings(settings.clone());
        if settings.changes_model(&earlier) {
            self.load_model();
        }
        Ok(())
    }

    /// What the person should be told once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells, once, that the system lacks the letters of a text in Chinese, Japanese or Korean.
    pub fn tell_missing_fonts(&self, text: &str) {
        let is_checked = &self.fonts_are_checked;
        if is_checked.load(Ordering::Relaxed) || !text.chars().any(is_cjk) {
            return;
        }
        if !is_checked.swap(true, Ordering::Relaxed) && !platform::has_cjk_fonts() {
            self.events.tell(AppEvent::Notice {
                message: "this system has no font for Chinese, Japanese and Korean, so their letters show as boxes; \
                          install one (Debian, Ubuntu: apt install fonts-noto-cjk) and start Reprise again"
                    .into(),
            });
        }
    }
}

/// See [`App::with_cache`].
fn with_cache<T: Send + 'static>(
    host: &Host,
    work: impl FnOnce(&Cache<'_>, &ChatStore) -> Result<T, Failure> + Send + 'static,
) -> Result<Option<T>, Failure> {
    host.with_cache(folders::kv()?, work)
}

/// The library's words for a model that is not here name commands of the terminal; the window has buttons.
fn in_words_of_the_window(error: ModelsError) -> Failure {
    match error {
        ModelsError::NotHere { entry, .. } => Failure::new(format!(
            "{} is not on this machine. Choose another model in the settings, or add a GGUF file there; {} has one",
            entry.title, entry.page
        )),
        ModelsError::Gone { name, path } => Failure::new(format!(
            "the file of {name} is gone from {}. Put it back and choose Try again, or choose another model in the \
             settings",
            folders::shown(&path)
        )),
        ModelsError::Unknown(name) => Failure::new(format!(
            "there is no model named {name} any more. Choose another one in the settings"
        )),
        other => Failure::from(other),
    }
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cjk_is_told_from_other_letters() {
        assert!("早上好".chars().all(is_cjk) && "한국".chars().all(is_cjk) && "カタ".chars().all(is_cjk));
        assert!(!"Grüße, привет 🙂".chars().any(is_cjk));
    }
}

//! The model and what is asked of it: loading one model in the place of another, answers side by side, titles when
//! nothing else waits.
//!
//! One thread, the [`worker`], loads models and begins work; every answer is made on a thread of its own ([`answering`])
//! that hands its prompt to the engine, waits there for a lane, and writes what comes to the store. Invariant: an answer
//! in the list of requests is not ended in the store; whoever takes it off the list ends it. So each answer ends exactly
//! once, whether its thread gets to it or the person stops it first.

mod ahead;
mod answering;
mod questions;
#[cfg(test)]
mod tests;
mod titles;
mod worker;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use reprise_engine::snapshot::Snapshot;
use reprise_engine::{CancelToken, StoreChoice};
use reprise_library::assistant::{Assistant, Writer};
use reprise_library::cache::Cache;
use reprise_library::chats::{ChatId, ChatStore, Turn, TurnId, TurnState};
use reprise_library::converse::{TokenCounts, prompt_before};
use reprise_library::inspection::{Inspection, Readings, explain, inspect};
use reprise_library::running::Published;
use reprise_library::skills::servers::Servers;

use crate::events::Events;
use crate::pictures::Pictures;
use crate::platform;
use crate::types::{AppEvent, Failure, ModelState, Phase, Settings, UnderWay};
use questions::Questions;
use worker::Worker;

/// The longest wait for the threads when the program ends: one graph call and one transaction take far less.
const LONGEST_FAREWELL: Duration = Duration::from_secs(10);

/// What is done with the model, or without when none is loaded.
type ModelWork = Box<dyn FnOnce(Option<&Model>) + Send>;

/// What is asked of the worker.
enum Job {
    Load(Box<LoadRequest>),
    Answer(TurnId),
    /// Something else.
    WithModel(ModelWork),
    /// Find what the model could read while nobody asks, and have it read.
    ReadAhead,
    /// Name the chats that have no name of their own, if nobody waits for an answer.
    Title,
    /// The engine of this model has ended by a fault.
    Broken(ModelNumber),
    Quit(Sender<()>),
}

/// A model to load.
pub struct LoadRequest {
    /// Its file, or why there is none.
    pub file: Result<PathBuf, Failure>,
    /// The name a person knows it by; none leaves it to the model's own.
    pub name: Option<String>,
    /// How to load it.
    pub settings: Settings,
    /// Where measured KV profiles are; without a folder none is used, nor measured while the engine is idle.
    pub profiles: Option<PathBuf>,
    /// Where what is read is kept; nowhere without.
    pub store: Option<StoreChoice>,
    /// The folder of indexed documents; with one they and the person's skills are read ahead.
    pub index: Option<PathBuf>,
    /// Whether the person's other programs (`reprise top`) see the engine.
    pub is_published: bool,
}

impl LoadRequest {
    fn shown_name(&self) -> String {
        let stem = |file: &PathBuf| Some(file.file_stem()?.to_string_lossy().into_owned());
        self.name
            .clone()
            .or_else(|| self.file.as_ref().ok().and_then(stem))
            .unwrap_or_else(|| "the model".into())
    }
}

/// What prompts can be written and counted with, whatever the engine is at.
pub struct Loaded {
    /// Writes prompts.
    pub writer: Arc<Writer>,
    /// Remembers what was counted.
    pub counts: TokenCounts,
    /// How the latest prompts were read.
    pub readings: Readings,
}

/// Tells one loading of a model from every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ModelNumber(u64);

/// A model that answers, for as long as a thread holds it.
struct Model {
    number: ModelNumber,
    assistant: Assistant,
    loaded: Arc<Loaded>,
    /// The folder of what is read ahead.
    index: Option<PathBuf>,
    /// Servers of tools, once an answer was to be made with them.
    servers: Mutex<Option<Servers>>,
    /// Shows the engine to the person's other programs.
    _published: Option<Published>,
}

/// An answer that was asked for and has not ended.
struct Request {
    chat: ChatId,
    turn: TurnId,
    phase: Phase,
    work: Work,
}

/// How far a request has come.
enum Work {
    /// No thread has it yet.
    Waits,
    /// A thread makes the answer.
    Runs(Handle),
}

/// The way to an answer that is being made.
#[derive(Clone, Default)]
struct Handle {
    cancel: CancelToken,
    /// Another model takes this one's place: if there is no new text yet, that one makes the answer.
    is_put_off: Arc<AtomicBool>,
    /// The person wants no more of it, whatever else happens.
    is_stopped: Arc<AtomicBool>,
}

/// What is asked for. Under one lock, because a title begins only when no answer is asked for.
#[derive(Default)]
struct Desk {
    requests: Vec<Request>,
    /// Chats that a model may be asked to name.
    unnamed: Vec<ChatId>,
    /// Cancels the title that is being made.
    title: Option<CancelToken>,
}

impl Desk {
    fn find(&mut self, turn: TurnId) -> Option<&mut Request> {
        self.requests.iter_mut().find(|request| request.turn == turn)
    }

    fn cancel_title(&self) {
        if let Some(title) = &self.title {
            title.cancel();
        }
    }
}

struct Shared {
    store: Arc<ChatStore>,
    events: Events,
    pictures: Arc<Pictures>,
    settings: Mutex<Settings>,
    model: Mutex<ModelState>,
    loaded: Mutex<Option<Arc<Loaded>>>,
    desk: Mutex<Desk>,
    questions: Mutex<Questions>,
    /// Requests to load that wait: only the last one is of use.
    waiting_loads: AtomicUsize,
    leaving: AtomicBool,
}

/// The way to the worker. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
    jobs: Sender<Job>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each of these is changed by single assignments and pushes: whole after any panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    /// Starts the worker.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(store: Arc<ChatStore>, events: Events, settings: Settings) -> std::io::Result<Host> {
        let (jobs, queue) = mpsc::channel();
        let shared = Shared::new(store, events, settings)?;
        let worker = Worker::new(Arc::clone(&shared), jobs.clone());
        thread::Builder::new().name("worker".into()).spawn(move || {
            // The engine's threads are started from here.
            platform::let_the_window_go_first();
            worker.run(&queue);
        })?;
        Ok(Host { shared, jobs })
    }

    /// Loads a model in the place of the present one. Answers that are being written are stopped and keep what they
    /// have; those without a word yet are made by the new model.
    pub fn load(&self, request: LoadRequest) {
        self.shared.set_model(ModelState::Loading {
            name: request.shown_name(),
        });
        self.shared.waiting_loads.fetch_add(1, Ordering::Relaxed);
        self.submit(Job::Load(Box::new(request)));
    }

    /// Makes an answer that is in the store as one being written.
    pub fn answer(&self, turn: &Turn) {
        let shared = &self.shared;
        let mut desk = lock(&shared.desk);
        let phase = match &*lock(&shared.model) {
            ModelState::Loading { .. } => Phase::Loading,
            _ => Phase::Queued,
        };
        desk.requests.push(Request {
            chat: turn.chat,
            turn: turn.id,
            phase,
            work: Work::Waits,
        });
        // Told and queued under the lock, so that no thread can tell of a later phase first.
        shared.tell_phase(turn.chat, turn.id, phase);
        self.submit(Job::Answer(turn.id));
        // A title begins under the same lock, and only when nobody waits: none begins after this.
        desk.cancel_title();
    }

    /// Stops an answer, whatever it is at; one that has ended is left as it is.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn stop(&self, turn: TurnId) -> Result<(), Failure> {
        lock(&self.shared.desk).requests.retain(|request| {
            if request.turn != turn {
                return true;
            }
            match &request.work {
                // Taken off the list, and ended below.
                Work::Waits => false,
                Work::Runs(handle) => {
                    handle.is_stopped.store(true, Ordering::Relaxed);
                    handle.cancel.cancel();
                    true
                }
            }
        });
        self.end_left(turn, TurnState::Stopped)
    }

    /// Ends an answer that nobody makes, although the store calls it being written: the disk was full when it ended.
    ///
    /// # Errors
    /// When the store cannot be written, still.
    pub fn settle(&self, turn: TurnId) -> Result<(), Failure> {
        self.end_left(turn, TurnState::Interrupted)
    }

    /// Ends an answer that is no request and that the store calls being written; any other is left as it is.
    fn end_left(&self, turn: TurnId, state: TurnState) -> Result<(), Failure> {
        let Shared {
            store, events, desk, ..
        } = &*self.shared;
        let is_request = lock(desk).find(turn).is_some();
        if !is_request && store.turn(turn)?.state == TurnState::Writing {
            let turn = store.finish_answer(turn, state, None, None)?;
            events.tell(AppEvent::Ended { turn });
        }
        Ok(())
    }

    /// Stops every answer of a chat.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn stop_chat(&self, chat: ChatId) -> Result<(), Failure> {
        let turns = self.turns_under_way(|request| request.chat == chat);
        turns.into_iter().try_for_each(|turn| self.stop(turn))
    }

    fn turns_under_way(&self, is_meant: impl Fn(&Request) -> bool) -> Vec<TurnId> {
        lock(&self.shared.desk)
            .requests
            .iter()
            .filter(|request| is_meant(request))
            .map(|request| request.turn)
            .collect()
    }

    /// The answers under way.
    pub fn under_way(&self) -> Vec<UnderWay> {
        lock(&self.shared.desk)
            .requests
            .iter()
            .map(|request| UnderWay {
                chat: request.chat,
                turn: request.turn,
                phase: request.phase,
            })
            .collect()
    }

    /// Whether somebody waits for an answer.
    pub fn is_answering(&self) -> bool {
        !lock(&self.shared.desk).requests.is_empty()
    }

    /// Has what is new among documents and skills read ahead, where the person wants that.
    pub fn read_ahead(&self) {
        self.submit(Job::ReadAhead);
    }

    /// The model's state.
    pub fn model(&self) -> ModelState {
        lock(&self.shared.model).clone()
    }

    /// The model's writer, once it is loaded.
    pub fn loaded(&self) -> Option<Arc<Loaded>> {
        lock(&self.shared.loaded).clone()
    }

    /// The engine as it looks now; none while no model is loaded.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.shared.pictures.latest()
    }

    /// What the person chose.
    pub fn settings(&self) -> Settings {
        lock(&self.shared.settings).clone()
    }

    /// Takes other settings, for the answers to come.
    pub fn set_settings(&self, settings: Settings) {
        let (reuse, reads_ahead) = (settings.reuse(), settings.read_ahead);
        let read_ahead_before = {
            let mut current = lock(&self.shared.settings);
            std::mem::replace(&mut *current, settings).read_ahead
        };
        self.submit(Job::WithModel(Box::new(move |model| {
            // An engine that has ended takes no settings; a person's Try again loads the model with them.
            let _ = model.map(|model| {
                model.assistant.engine().with_worker(move |worker| {
                    worker.set_reuse(reuse);
                    if !reads_ahead {
                        worker.stop_reading_ahead();
                    }
                })
            });
        })));
        if reads_ahead && !read_ahead_before {
            self.submit(Job::ReadAhead);
        }
    }

    /// Does something with the model's engine, or without when no model is loaded, between what else is asked of the
    /// worker, and waits for it. What holds the engine is done when this returns, so that it can be unloaded.
    fn with_model<T: Send + 'static>(
        &self,
        work: impl FnOnce(Option<&Model>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (sender, receiver) = mpsc::channel();
        self.submit(Job::WithModel(Box::new(move |model| {
            let _ = sender.send(work(model));
        })));
        receiver
            .recv()
            .unwrap_or_else(|_| Err(Failure::new("the program is ending; start it again")))
    }

    /// How the prompt of an answer was read, or would be now when that is not known any more.
    ///
    /// # Errors
    /// When no model is loaded, or the chat cannot be read.
    pub fn inspect(&self, turn: TurnId) -> Result<Inspection, Failure> {
        let shared = Arc::clone(&self.shared);
        self.with_model(move |model| {
            let Some(model) = model else {
                return Err(Failure::new(
                    "no model is loaded that the prompt could be shown with; choose one in the settings",
                ));
            };
            let (store, engine) = (&shared.store, model.assistant.engine());
            let Loaded {
                writer,
                counts,
                readings,
            } = &*model.loaded;
            if let Some((reading, before)) = readings.of(turn) {
                return Ok(inspect(engine, store, &reading, &before, false)?);
            }
            let instructions = lock(&shared.settings).instructions();
            let laid_out = prompt_before(store, writer, counts, turn, &instructions)?;
            let reading = explain(engine, laid_out)?;
            Ok(inspect(engine, store, &reading, &readings.all(), true)?)
        })
    }

    /// Does something with what is kept on disk in a folder, through the engine where that has it open; none when nothing
    /// is kept there yet.
    ///
    /// # Errors
    /// When another program has it open, and the work's own.
    pub fn with_cache<T: Send + 'static>(
        &self,
        folder: PathBuf,
        work: impl FnOnce(&Cache<'_>, &ChatStore) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        let store = Arc::clone(&self.shared.store);
        self.with_model(move |model| {
            let open = match model {
                Some(model) => Cache::of(model.assistant.engine())?,
                None => None,
            };
            let cache = match open {
                Some(cache) => Some(cache),
                None => Cache::open(&folder)?,
            };
            cache.map(|cache| work(&cache, &store)).transpose()
        })
    }

    /// Stops everything and waits until what was written is in the store.
    pub fn quit(&self) {
        self.shared.leaving.store(true, Ordering::Relaxed);
        lock(&self.shared.desk).cancel_title();
        for turn in self.turns_under_way(|_| true) {
            if let Err(failure) = self.stop(turn) {
                tracing::error!(message = failure.message, "an answer could not be ended");
            }
        }
        let (done, farewell) = mpsc::channel();
        self.submit(Job::Quit(done));
        if farewell.recv_timeout(LONGEST_FAREWELL).is_err() {
            tracing::warn!(
                "the engine did not come to rest in time; the answers are closed at the next start"
            );
        }
    }

    fn submit(&self, job: Job) {
        if self.jobs.send(job).is_err() {
            // Only after `quit`.
            tracing::debug!("the worker has ended");
        }
    }
}

impl Shared {
    fn new(store: Arc<ChatStore>, events: Events, settings: Settings) -> std::io::Result<Arc<Shared>> {
        Ok(Arc::new(Shared {
            store,
            pictures: Pictures::start(events.clone())?,
            events,
            settings: Mutex::new(settings),
            model: Mutex::new(ModelState::Loading { name: String::new() }),
            loaded: Mutex::new(None),
            desk: Mutex::new(Desk::default()),
            questions: Mutex::new(Questions::default()),
            waiting_loads: AtomicUsize::new(0),
            leaving: AtomicBool::new(false),
        }))
    }

    fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    fn set_model(&self, model: ModelState) {
        *lock(&self.model) = model.clone();
        self.events.tell(AppEvent::Model { model });
    }

    fn tell_phase(&self, chat: ChatId, turn: TurnId, phase: Phase) {
        self.pictures.stir();
        self.events.tell(AppEvent::Phase { chat, turn, phase });
    }

    fn set_phase(&self, turn: TurnId, phase: Phase) {
        if let Some(request) = lock(&self.desk).find(turn) {
            request.phase = phase;
            self.tell_phase(request.chat, turn, phase);
        }
    }

    /// Answers that waited for the model wait for their turn now.
    fn queue_loading(&self) {
        for request in &mut lock(&self.desk).requests {
            if matches!(request.phase, Phase::Loading) {
                request.phase = Phase::Queued;
                self.tell_phase(request.chat, request.turn, Phase::Queued);
            }
        }
    }

    fn tell_chat(&self, chat: ChatId) {
        match self.store.summary(chat) {
            Ok(summary) => self.events.tell(AppEvent::Chat { summary }),
            Err(error) => tracing::warn!(%error, "a chat could not be read"),
        }
    }
}

/// The words for a fault of the program's own.
fn fault(what: &str) -> String {
    format!(
        "{what} failed by a fault in Reprise; your chats are safe; choose Try again to load the model anew"
    )
}

//! The engine's own thread and what is asked of it: loading a model, answers one after the other, titles when nothing
//! else waits.
//!
//! Invariant: an answer in the list of requests is not ended in the store; whoever takes it off the list ends it. So
//! each answer ends exactly once, whether the thread gets to it or the person stops it first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use reprise_engine::CancelToken;
use reprise_library::assistant::{Assistant, Writer};
use reprise_library::chats::{ChatId, ChatStore, Turn, TurnId, TurnState};
use reprise_library::converse::{AnswerRequest, Progress, TokenCounts};

use crate::events::Events;
use crate::types::{AppEvent, Failure, ModelState, Phase, Settings, UnderWay};

/// The longest wait for the thread when the program ends: one graph call and one transaction take far less.
const LONGEST_FAREWELL: Duration = Duration::from_secs(10);

/// What is asked of the thread.
enum Job {
    Load(LoadRequest),
    Answer(TurnId),
    Title(ChatId),
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

/// What prompts can be written and counted with while the engine is busy.
pub struct Loaded {
    /// Writes prompts.
    pub writer: Arc<Writer>,
    /// Remembers what was counted.
    pub counts: TokenCounts,
}

struct Request {
    chat: ChatId,
    turn: TurnId,
    cancel: CancelToken,
    phase: Phase,
    is_started: bool,
}

struct Shared {
    store: Arc<ChatStore>,
    events: Events,
    settings: Mutex<Settings>,
    model: Mutex<ModelState>,
    loaded: Mutex<Option<Arc<Loaded>>>,
    requests: Mutex<Vec<Request>>,
    /// Cancels the title that is being made, so that a person never waits for one.
    title: Mutex<Option<CancelToken>>,
}

/// The way to the engine's thread. Cheap to clone.
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
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn start(store: Arc<ChatStore>, events: Events, settings: Settings) -> std::io::Result<Host> {
        let (jobs, queue) = mpsc::channel();
        let shared = Arc::new(Shared {
            store,
            events,
            settings: Mutex::new(settings),
            model: Mutex::new(ModelState::Loading { name: String::new() }),
            loaded: Mutex::new(None),
            requests: Mutex::new(Vec::new()),
            title: Mutex::new(None),
        });
        let worker = Worker {
            shared: Arc::clone(&shared),
            later: jobs.clone(),
            assistant: None,
        };
        thread::Builder::new()
            .name("engine".into())
            .spawn(move || worker.run(&queue))?;
        Ok(Host { shared, jobs })
    }

    /// Loads a model in the place of the present one, after the answers that were asked for before.
    pub fn load(&self, request: LoadRequest) {
        self.shared.set_model(ModelState::Loading {
            name: request.shown_name(),
        });
        self.submit(Job::Load(request));
    }

    /// Makes an answer that is in the store as one being written.
    pub fn answer(&self, turn: &Turn) {
        let shared = &self.shared;
        if let Some(title) = &*lock(&shared.title) {
            title.cancel();
        }
        let mut requests = lock(&shared.requests);
        let phase = match &*lock(&shared.model) {
            ModelState::Loading { .. } => Phase::Loading,
            _ => Phase::Queued,
        };
        requests.push(Request {
            chat: turn.chat,
            turn: turn.id,
            cancel: CancelToken::default(),
            phase,
            is_started: false,
        });
        // Told and queued under the lock, so that the thread cannot tell of a later phase first.
        shared.tell_phase(turn.chat, turn.id, phase);
        self.submit(Job::Answer(turn.id));
    }

    /// Stops an answer, whatever it is at; one that has ended is left as it is.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn stop(&self, turn: TurnId) -> Result<(), Failure> {
        let taken = {
            let mut requests = lock(&self.shared.requests);
            match requests.iter().position(|request| request.turn == turn) {
                Some(index) if requests[index].is_started => {
                    requests[index].cancel.cancel();
                    None
                }
                Some(index) => Some(requests.remove(index)),
                None => None,
            }
        };
        if taken.is_some() {
            let turn = self
                .shared
                .store
                .finish_answer(turn, TurnState::Stopped, None, None)?;
            self.shared.events.tell(AppEvent::Ended { turn });
        }
        Ok(())
    }

    /// Stops every answer of a chat.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn stop_chat(&self, chat: ChatId) -> Result<(), Failure> {
        let turns: Vec<TurnId> = lock(&self.shared.requests)
            .iter()
            .filter(|request| request.chat == chat)
            .map(|request| request.turn)
            .collect();
        turns.into_iter().try_for_each(|turn| self.stop(turn))
    }

    /// The answers under way.
    pub fn under_way(&self) -> Vec<UnderWay> {
        lock(&self.shared.requests)
            .iter()
            .map(|request| UnderWay {
                chat: request.chat,
                turn: request.turn,
                phase: request.phase,
            })
            .collect()
    }

    /// The model's state.
    pub fn model(&self) -> ModelState {
        lock(&self.shared.model).clone()
    }

    /// The model's writer, once it is loaded.
    pub fn loaded(&self) -> Option<Arc<Loaded>> {
        lock(&self.shared.loaded).clone()
    }

    /// What the person chose.
    pub fn settings(&self) -> Settings {
        lock(&self.shared.settings).clone()
    }

    /// Takes other settings, for the answers to come.
    pub fn set_settings(&self, settings: Settings) {
        *lock(&self.shared.settings) = settings;
    }

    /// Stops everything and waits until what was written is in the store.
    pub fn quit(&self) {
        if let Some(title) = &*lock(&self.shared.title) {
            title.cancel();
        }
        let turns: Vec<TurnId> = lock(&self.shared.requests)
            .iter()
            .map(|request| request.turn)
            .collect();
        for turn in turns {
            if let Err(failure) = self.stop(turn) {
                tracing::error!(message = failure.message, "an answer could not be ended");
            }
        }
        let (done, farewell) = mpsc::channel();
        self.submit(Job::Quit(done));
        if farewell.recv_timeout(LONGEST_FAREWELL).is_err() {
            tracing::warn!("the engine did not come to rest in time; the answer is closed at the next start");
        }
    }

    fn submit(&self, job: Job) {
        if self.jobs.send(job).is_err() {
            // Only after `quit`.
            tracing::debug!("the engine's thread has ended");
        }
    }
}

impl Shared {
    fn set_model(&self, model: ModelState) {
        *lock(&self.model) = model.clone();
        self.events.tell(AppEvent::Model { model });
    }

    /// The model that was ready can no longer be used.
    fn fail_model(&self, error: String) {
        let name = match &*lock(&self.model) {
            ModelState::Loading { name }
            | ModelState::Ready { name, .. }
            | ModelState::Failed { name, .. } => name.clone(),
        };
        self.set_model(ModelState::Failed { name, error });
    }

    fn tell_phase(&self, chat: ChatId, turn: TurnId, phase: Phase) {
        self.events.tell(AppEvent::Phase { chat, turn, phase });
    }

    fn set_phase(&self, turn: TurnId, phase: Phase) {
        let mut requests = lock(&self.requests);
        if let Some(request) = requests.iter_mut().find(|request| request.turn == turn) {
            request.phase = phase;
            self.tell_phase(request.chat, turn, phase);
        }
    }
}

/// What runs on the thread.
struct Worker {
    shared: Arc<Shared>,
    later: Sender<Job>,
    assistant: Option<Assistant>,
}

impl Worker {
    fn run(mut self, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            match job {
                Job::Load(request) => self.load(request),
                Job::Answer(turn) => self.answer(turn),
                Job::Title(chat) => self.title(chat),
                Job::Quit(done) => {
                    // Nobody waits any more when the farewell took too long.
                    let _ = done.send(());
                    return;
                }
            }
        }
    }

    fn load(&mut self, request: LoadRequest) {
        let shown_name = request.shown_name();
        let LoadRequest { file, name, settings } = request;
        // The old model's memory is given back before the new one takes its own.
        self.assistant = None;
        *lock(&self.shared.loaded) = None;
        let options = settings.load_options();
        let loaded = file.and_then(|file| {
            let load = || Assistant::load(&file, &options).map_err(Failure::from);
            catch_unwind(AssertUnwindSafe(load))
                .unwrap_or_else(|_| Err(Failure::new(fault("loading the model"))))
        });
        match loaded {
            Ok(assistant) => {
                let writer = Arc::clone(assistant.writer());
                let info = writer.info();
                let state = ModelState::Ready {
                    name: name.unwrap_or_else(|| info.name.clone()),
                    quantisation: info.quantisation.clone(),
                    context_tokens: info.context_tokens,
                    trained_context_tokens: info.trained_context_tokens,
                    threads: info.threads,
                    backend: assistant.engine().backend_name().to_string(),
                    warning: writer.warning().map(str::to_owned),
                };
                *lock(&self.shared.loaded) = Some(Arc::new(Loaded {
                    writer,
                    counts: TokenCounts::default(),
                }));
                self.assistant = Some(assistant);
                self.shared.set_model(state);
            }
            Err(Failure { message }) => self.shared.set_model(ModelState::Failed {
                name: shown_name,
                error: message,
            }),
        }
    }

    fn answer(&mut self, turn: TurnId) {
        let shared = Arc::clone(&self.shared);
        let cancel = {
            let mut requests = lock(&shared.requests);
            let Some(request) = requests.iter_mut().find(|request| request.turn == turn) else {
                return; // stopped while it waited
            };
            request.is_started = true;
            request.cancel.clone()
        };
        let outcome = self.try_answer(turn, &cancel);
        let taken = {
            let mut requests = lock(&shared.requests);
            requests
                .iter()
                .position(|request| request.turn == turn)
                .map(|index| requests.remove(index))
        };
        match outcome {
            Ok(turn) => {
                let chat = turn.chat;
                let is_told = !turn.text.is_empty();
                shared.events.tell(AppEvent::Ended { turn });
                self.tell_chat(chat);
                if is_told {
                    // Behind whatever waits already.
                    let _ = self.later.send(Job::Title(chat));
                }
            }
            Err(failure) => match shared.store.turn(turn) {
                Ok(mut ended) => {
                    ended.state = TurnState::Failed;
                    ended.error = Some(failure.message);
                    shared.events.tell(AppEvent::Ended { turn: ended });
                }
                Err(error) => {
                    let chat = taken.map_or(0, |request| request.chat.0);
                    tracing::error!(%error, chat, "an answer failed, and so did reading it");
                    shared.events.tell(AppEvent::Notice {
                        message: failure.message,
                    });
                }
            },
        }
    }

    fn try_answer(&mut self, turn: TurnId, cancel: &CancelToken) -> Result<Turn, Failure> {
        let shared = Arc::clone(&self.shared);
        let fail = |message: String| -> Result<Turn, Failure> {
            shared
                .store
                .finish_answer(turn, TurnState::Failed, None, Some(&message))?;
            Err(Failure::new(message))
        };
        let loaded = lock(&shared.loaded).clone();
        let (Some(assistant), Some(loaded)) = (self.assistant.as_mut(), loaded) else {
            let reason = match &*lock(&shared.model) {
                ModelState::Failed { error, .. } => error.clone(),
                _ => "no model is loaded; choose one in the settings".into(),
            };
            return fail(reason);
        };
        let instructions = lock(&shared.settings).instructions();
        let mut is_writing = false;
        let chat = shared.store.turn(turn)?.chat;
        let mut on_progress = |progress: Progress<'_>| match progress {
            Progress::Reading {
                done_tokens,
                total_tokens,
                reused_tokens,
                left,
            } => shared.set_phase(
                turn,
                Phase::Reading {
                    done_tokens,
                    total_tokens,
                    reused_tokens,
                    seconds_left: left.map(|left| left.as_secs_f64()),
                },
            ),
            Progress::Text { from, text } => {
                if !is_writing {
                    is_writing = true;
                    shared.set_phase(turn, Phase::Writing);
                }
                shared.events.tell(AppEvent::Text {
                    chat,
                    turn,
                    from,
                    text: text.to_owned(),
                });
            }
        };
        let request = AnswerRequest {
            store: &shared.store,
            counts: &loaded.counts,
            turn,
            instructions: &instructions,
            cancel,
        };
        let answer = || request.answer(assistant, &mut on_progress);
        match catch_unwind(AssertUnwindSafe(answer)) {
            Ok(outcome) => Ok(outcome?),
            Err(_) => {
                // What the engine holds may be half changed: it is loaded anew at the next wish.
                self.assistant = None;
                *lock(&shared.loaded) = None;
                let message = fault("answering");
                shared.fail_model(message.clone());
                fail(message)
            }
        }
    }

    /// Names a chat that has no better name than its question, when nobody waits for an answer.
    fn title(&mut self, chat: ChatId) {
        let shared = Arc::clone(&self.shared);
        let Some(assistant) = self.assistant.as_mut() else {
            return;
        };
        let cancel = CancelToken::default();
        {
            let requests = lock(&shared.requests);
            if !requests.is_empty() {
                return; // the next answer of this chat asks again
            }
            *lock(&shared.title) = Some(cancel.clone());
        }
        let question = match shared.store.unnamed_question(chat) {
            Ok(Some(question)) => question,
            _ => return,
        };
        let title = catch_unwind(AssertUnwindSafe(|| assistant.title(&question, &cancel)));
        *lock(&shared.title) = None;
        match title {
            Ok(Ok(_)) if cancel.is_cancelled() => {} // the next answer of this chat asks again
            Ok(Ok(title)) => {
                // A model that found no title is not asked again: the question's beginning stays.
                let title = match title {
                    Some(title) => Ok(title),
                    None => shared
                        .store
                        .summary(chat)
                        .map(|chat| chat.title.unwrap_or_default()),
                };
                match title.and_then(|title| shared.store.set_generated_title(chat, &title)) {
                    Ok(summary) => shared.events.tell(AppEvent::Chat { summary }),
                    Err(error) => tracing::warn!(%error, "a title could not be stored"),
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "no title could be made"),
            Err(_) => {
                self.assistant = None;
                *lock(&shared.loaded) = None;
                shared.fail_model(fault("naming a chat"));
            }
        }
    }

    fn tell_chat(&self, chat: ChatId) {
        match self.shared.store.summary(chat) {
            Ok(summary) => self.shared.events.tell(AppEvent::Chat { summary }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    struct Bench {
        _folder: tempfile::TempDir,
        store: Arc<ChatStore>,
        host: Host,
    }

    fn bench(max_answer_tokens: usize) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(ChatStore::open(folder.path().join("chats.sqlite")).unwrap().0);
        let settings = Settings {
            max_answer_tokens,
            context_tokens: Some(512),
            threads: Some(1),
            temperature: 0.0,
            ..Settings::default()
        };
        let host = Host::start(Arc::clone(&store), Events::default(), settings).unwrap();
        Bench {
            _folder: folder,
            store,
            host,
        }
    }

    impl Bench {
        fn load(&self, file: &str) {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/tiny");
            self.host.load(LoadRequest {
                file: Ok(folder.join(file)),
                name: None,
                settings: self.host.settings(),
            });
        }

        fn ask(&self, text: &str) -> TurnId {
            let question = self.store.begin_chat(text).unwrap();
            let answer = self.store.begin_answer(question.id, "tiny").unwrap();
            self.host.answer(&answer);
            answer.id
        }

        /// Waits until an answer has ended; tests that fail wait a minute for it.
        fn ended(&self, turn: TurnId) -> Turn {
            let patience = Instant::now() + Duration::from_secs(60);
            loop {
                let turn = self.store.turn(turn).unwrap();
                if turn.state != TurnState::Writing {
                    return turn;
                }
                assert!(Instant::now() < patience, "the answer does not end");
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    const MODEL: &str = "tiny-llama3-q4_k.gguf";

    #[test]
    fn an_answer_asked_for_while_the_model_loads_is_made_when_it_is_there() {
        let bench = bench(8);
        bench.load(MODEL);
        let turn = bench.ask("Good morning");
        let ended = bench.ended(turn);
        assert!(!ended.text.is_empty(), "{ended:?}");
        assert!(bench.host.under_way().is_empty());
        assert!(matches!(bench.host.model(), ModelState::Ready { .. }));
    }

    #[test]
    fn answers_are_stopped_while_loading_waiting_and_running() {
        let bench = bench(400);
        bench.load(MODEL);
        let turns: Vec<TurnId> = (0..3)
            .map(|number| bench.ask(&format!("Question {number}")))
            .collect();
        for &turn in turns.iter().rev() {
            bench.host.stop(turn).unwrap();
        }
        for turn in turns {
            assert_eq!(bench.ended(turn).state, TurnState::Stopped);
        }
        let turn = bench.ask("Are you still there?");
        bench
            .host
            .stop_chat(bench.store.turn(turn).unwrap().chat)
            .unwrap();
        assert_eq!(bench.ended(turn).state, TurnState::Stopped);
        bench.host.stop(turn).unwrap();
        assert_eq!(
            bench.ended(turn).state,
            TurnState::Stopped,
            "stopping twice changes nothing"
        );
    }

    #[test]
    fn without_a_model_an_answer_tells_why_and_another_model_brings_the_next_one() {
        let bench = bench(8);
        bench.load("there-is-no-such.gguf");
        let turn = bench.ask("Good morning");
        let failed = bench.ended(turn);
        assert_eq!(failed.state, TurnState::Failed);
        assert!(failed.error.unwrap().contains("there-is-no-such.gguf"));
        assert!(matches!(bench.host.model(), ModelState::Failed { .. }));
        bench.load(MODEL);
        let turn = bench.ask("Good morning");
        assert!(bench.ended(turn).error.is_none());
    }

    #[test]
    fn leaving_in_the_middle_of_an_answer_ends_it_in_the_store() {
        let bench = bench(400);
        bench.load(MODEL);
        let turns = [bench.ask("Good morning"), bench.ask("Good evening")];
        bench.host.quit();
        for turn in turns {
            assert_eq!(bench.store.turn(turn).unwrap().state, TurnState::Stopped);
        }
    }

    #[test]
    fn a_title_is_looked_for_once_and_a_persons_own_stays() {
        let bench = bench(8);
        bench.load(MODEL);
        let turn = bench.ask("Good morning");
        let chat = bench.ended(turn).chat;
        // The next answer is made after the title's turn.
        let other = bench.ask("Good evening");
        bench.ended(other);
        let third = bench.ask("Good night");
        bench.ended(third);
        assert_eq!(
            bench
                .store
                .summary(chat)
                .unwrap()
                .title
                .as_deref()
                .map(str::is_empty),
            Some(false)
        );
        bench.store.rename_chat(chat, "Mine").unwrap();
        assert_eq!(bench.store.unnamed_question(chat).unwrap(), None);
        assert_eq!(bench.store.summary(chat).unwrap().title.as_deref(), Some("Mine"));
    }
}

//! The engine's own thread and what is asked of it: loading a model, answers one after the other, titles when nothing
//! else waits.
//!
//! Invariant: an answer in the list of requests is not ended in the store; whoever takes it off the list ends it. So
//! each answer ends exactly once, whether the thread gets to it or the person stops it first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use reprise_engine::snapshot::Snapshot;
use reprise_engine::{CancelToken, EngineError, LoadOptions};
use reprise_library::assistant::{Assistant, AssistantError, Writer};
use reprise_library::chats::{ChatId, ChatStore, Turn, TurnId, TurnState};
use reprise_library::converse::{AnswerRequest, Progress, TokenCounts};

use crate::events::Events;
use crate::pictures::Pictures;
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
    pictures: Arc<Pictures>,
    requests: Mutex<Vec<Request>>,
    /// Requests to load that wait: only the last one is of use.
    waiting_loads: AtomicUsize,
    leaving: AtomicBool,
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
        let pictures = Pictures::start(events.clone())?;
        let shared = Arc::new(Shared {
            store,
            events,
            settings: Mutex::new(settings),
            model: Mutex::new(ModelState::Loading { name: String::new() }),
            loaded: Mutex::new(None),
            pictures,
            requests: Mutex::new(Vec::new()),
            waiting_loads: AtomicUsize::new(0),
            leaving: AtomicBool::new(false),
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
        self.shared.waiting_loads.fetch_add(1, Ordering::Relaxed);
        self.submit(Job::Load(request));
    }

    /// Makes an answer that is in the store as one being written.
    pub fn answer(&self, turn: &Turn) {
        let shared = &self.shared;
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
        // A title begins under the same lock, and only when nobody waits: none begins after this.
        if let Some(title) = &*lock(&shared.title) {
            title.cancel();
        }
    }

    /// Stops an answer, whatever it is at; one that has ended is left as it is.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn stop(&self, turn: TurnId) -> Result<(), Failure> {
        lock(&self.shared.requests).retain(|request| {
            let is_meant = request.turn == turn;
            if is_meant && request.is_started {
                request.cancel.cancel();
            }
            // One that waits is taken off the list, and ended below.
            !is_meant || request.is_started
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
            store,
            events,
            requests,
            ..
        } = &*self.shared;
        let is_request = lock(requests).iter().any(|request| request.turn == turn);
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
        *lock(&self.shared.settings) = settings;
    }

    /// Stops everything and waits until what was written is in the store.
    pub fn quit(&self) {
        self.shared.leaving.store(true, Ordering::Relaxed);
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
    fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Answers that waited for the model wait for their turn now.
    fn queue_loading(&self) {
        for request in lock(&self.requests).iter_mut() {
            if matches!(request.phase, Phase::Loading) {
                request.phase = Phase::Queued;
                self.tell_phase(request.chat, request.turn, Phase::Queued);
            }
        }
    }

    fn set_model(&self, model: ModelState) {
        *lock(&self.model) = model.clone();
        self.events.tell(AppEvent::Model { model });
    }

    /// The answer as it stands in the store after a failure, ended there if it was not yet.
    fn end_failed(&self, turn: TurnId, failure: &Failure) -> Result<Turn, Failure> {
        let stored = self.store.turn(turn).map_err(|_| failure.clone())?;
        if stored.state != TurnState::Writing {
            return Ok(stored);
        }
        let ended = self
            .store
            .finish_answer(turn, TurnState::Failed, None, Some(&failure.message));
        // A store that cannot be written cannot keep the failure; the page shows it, and Stop tries once more.
        Ok(ended.unwrap_or(Turn {
            state: TurnState::Failed,
            error: Some(failure.message.clone()),
            ..stored
        }))
    }

    /// The model that was ready can no longer be used.
    fn fail_model(&self, error: String) {
        let name = lock(&self.model).name().to_owned();
        self.set_model(ModelState::Failed { name, error });
    }

    fn tell_phase(&self, chat: ChatId, turn: TurnId, phase: Phase) {
        self.pictures.stir();
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
        let is_last = self.shared.waiting_loads.fetch_sub(1, Ordering::Relaxed) == 1;
        if self.shared.is_leaving() || !is_last {
            return; // nobody waits for it, or a later request takes its place
        }
        self.shared.set_model(ModelState::Loading {
            name: shown_name.clone(),
        });
        // The old model's memory is given back before the new one takes its own.
        self.assistant = None;
        *lock(&self.shared.loaded) = None;
        self.shared.pictures.show(None);
        let loaded = file.and_then(|file| {
            let load = || load_with_fitting_window(&file, &settings);
            catch_unwind(AssertUnwindSafe(load))
                .unwrap_or_else(|_| Err(Failure::new(fault("loading the model"))))
        });
        match loaded {
            Ok((assistant, narrowed)) => {
                let writer = Arc::clone(assistant.writer());
                let info = writer.info();
                let state = ModelState::Ready {
                    name: name.unwrap_or_else(|| info.name.clone()),
                    quantisation: info.quantisation.clone(),
                    context_tokens: info.context_tokens,
                    trained_context_tokens: info.trained_context_tokens,
                    threads: info.threads,
                    backend: assistant.engine().backend_name().to_string(),
                    warning: narrowed.or_else(|| writer.warning().map(str::to_owned)),
                };
                *lock(&self.shared.loaded) = Some(Arc::new(Loaded {
                    writer,
                    counts: TokenCounts::default(),
                }));
                self.shared
                    .pictures
                    .show(Some(assistant.engine().shared_snapshot()));
                self.assistant = Some(assistant);
                self.shared.set_model(state);
                self.shared.queue_loading();
            }
            Err(Failure { message }) => self.shared.set_model(ModelState::Failed {
                name: shown_name,
                error: message,
            }),
        }
    }

    fn answer(&mut self, turn: TurnId) {
        let shared = Arc::clone(&self.shared);
        let (chat, cancel) = {
            let mut requests = lock(&shared.requests);
            let Some(request) = requests.iter_mut().find(|request| request.turn == turn) else {
                return; // stopped while it waited
            };
            request.is_started = true;
            (request.chat, request.cancel.clone())
        };
        let outcome = self.try_answer(chat, turn, &cancel);
        // Whatever went wrong, the store gets the chance to say that the answer has ended.
        let ended = outcome.or_else(|failure| shared.end_failed(turn, &failure));
        lock(&shared.requests).retain(|request| request.turn != turn);
        match ended {
            Ok(turn) => {
                let is_told = !turn.text.is_empty() && turn.error.is_none();
                shared.events.tell(AppEvent::Ended { turn });
                self.tell_chat(chat);
                if is_told {
                    // Behind whatever waits already.
                    let _ = self.later.send(Job::Title(chat));
                }
            }
            Err(Failure { message }) => shared.events.tell(AppEvent::Notice { message }),
        }
    }

    fn try_answer(&mut self, chat: ChatId, turn: TurnId, cancel: &CancelToken) -> Result<Turn, Failure> {
        let shared = Arc::clone(&self.shared);
        let loaded = lock(&shared.loaded).clone();
        let (Some(assistant), Some(loaded)) = (self.assistant.as_mut(), loaded) else {
            return Err(Failure::new(match &*lock(&shared.model) {
                ModelState::Failed { error, .. } => error.clone(),
                _ => "no model is loaded; choose one in the settings".into(),
            }));
        };
        let instructions = lock(&shared.settings).instructions();
        let mut is_writing = false;
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
                shared.pictures.stir();
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
                // What the engine holds may be half changed: a person's Try again loads it anew.
                self.assistant = None;
                *lock(&shared.loaded) = None;
                let message = fault("answering");
                shared.fail_model(message.clone());
                Err(Failure::new(message))
            }
        }
    }

    /// Names a chat that has no better name than its question, when nobody waits for an answer.
    fn title(&mut self, chat: ChatId) {
        let shared = Arc::clone(&self.shared);
        let (Some(assistant), Ok(Some(question))) =
            (self.assistant.as_mut(), shared.store.unnamed_question(chat))
        else {
            return;
        };
        let cancel = CancelToken::default();
        {
            let requests = lock(&shared.requests);
            if !requests.is_empty() || shared.is_leaving() {
                return; // the next answer of this chat asks again
            }
            *lock(&shared.title) = Some(cancel.clone());
        }
        let title = catch_unwind(AssertUnwindSafe(|| assistant.title(&question, &cancel)));
        *lock(&shared.title) = None;
        match title {
            Ok(Ok(_)) if cancel.is_cancelled() => {} // the next answer of this chat asks again
            Ok(Ok(title)) => {
                let named = match title {
                    Some(title) => shared.store.set_generated_title(chat, &title),
                    None => shared.store.keep_question_title(chat),
                };
                match named {
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

/// Loads a model. A window that is wider than this model's, chosen for another one perhaps, is narrowed, and the sentence
/// that says so comes along.
fn load_with_fitting_window(
    file: &Path,
    settings: &Settings,
) -> Result<(Assistant, Option<String>), Failure> {
    let options = settings.load_options();
    match Assistant::load(file, &options) {
        Err(AssistantError::Engine(EngineError::Window { asked, trained, .. })) if asked > trained => {
            let narrower = LoadOptions {
                context_tokens: Some(trained),
                ..options
            };
            let warning = format!(
                "the window of {asked} tokens in the settings is wider than this model's own; it has {trained} tokens now"
            );
            Ok((Assistant::load(file, &narrower)?, Some(warning)))
        }
        loaded => Ok((loaded?, None)),
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
    use reprise_library::models::Shelf;
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
            context_tokens: None,
            threads: Some(1),
            // Random enough that no answer ends because it repeats itself.
            temperature: 2.0,
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

        /// The real model, whose answers take long enough to be stopped.
        fn load_default(&self) {
            self.host.load(LoadRequest {
                file: Ok(Shelf::of_machine().unwrap().resolve(None).unwrap()),
                name: None,
                settings: self.host.settings(),
            });
        }

        /// Waits until the first words of an answer are there.
        fn until_writing(&self, turn: TurnId) {
            let patience = Instant::now() + Duration::from_secs(60);
            let is_writing = |answer: &UnderWay| answer.turn == turn && answer.phase == Phase::Writing;
            while !self.host.under_way().iter().any(is_writing) {
                assert!(Instant::now() < patience, "the answer does not begin");
                thread::sleep(Duration::from_millis(2));
            }
        }

        fn ask(&self, text: &str) -> TurnId {
            let question = self.store.begin_chat(text).unwrap();
            let answer = self.store.begin_answer(question.id, "tiny").unwrap();
            self.host.answer(&answer);
            answer.id
        }

        /// Whether a model may still be asked for a chat's title, after a while in which it should have been.
        fn is_still_unnamed(&self, chat: ChatId) -> bool {
            let patience = Instant::now() + Duration::from_secs(60);
            while self.store.unnamed_question(chat).unwrap().is_some() {
                if Instant::now() > patience {
                    return true;
                }
                thread::sleep(Duration::from_millis(2));
            }
            false
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
        let bench = bench(4_000);
        bench.load_default();
        // Long before the model is there; and however fast it is, its answer takes seconds.
        let turn = bench.ask("Tell me a long story about a lighthouse");
        bench.host.stop(turn).unwrap();
        assert_eq!(bench.ended(turn).state, TurnState::Stopped);

        let [running, waiting] = [1, 2].map(|number| bench.ask(&format!("Tell me {number} long stories")));
        bench.until_writing(running);
        bench.host.stop(waiting).unwrap();
        assert_eq!(bench.ended(waiting).state, TurnState::Stopped);
        assert_eq!(bench.store.turn(running).unwrap().state, TurnState::Writing);
        bench
            .host
            .stop_chat(bench.store.turn(running).unwrap().chat)
            .unwrap();
        let ended = bench.ended(running);
        assert_eq!(ended.state, TurnState::Stopped);
        assert!(!ended.text.is_empty(), "what was written is kept");
        bench.host.stop(running).unwrap();
        assert_eq!(bench.ended(running), ended, "stopping twice changes nothing");
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
        let bench = bench(4_000);
        bench.load_default();
        let turns = [1, 2].map(|number| bench.ask(&format!("Tell me {number} long stories")));
        bench.until_writing(turns[0]);
        bench.host.quit();
        for turn in turns {
            assert_eq!(bench.store.turn(turn).unwrap().state, TurnState::Stopped);
        }
    }

    #[test]
    fn a_model_is_asked_for_a_title_once_and_never_for_a_chat_that_a_person_named() {
        let bench = bench(8);
        bench.load(MODEL);
        let named = bench.store.begin_chat("Good morning").unwrap();
        bench.store.rename_chat(named.chat, "Mine").unwrap();
        let first = bench.store.begin_answer(named.id, "tiny").unwrap();
        bench.host.answer(&first);
        bench.ended(first.id);
        let unnamed = bench.ask("Good evening");
        let chat = bench.ended(unnamed).chat;
        // Whether the random model finds a title or not, the question is settled.
        assert!(!bench.is_still_unnamed(chat), "the model was not asked");
        assert_eq!(
            bench.store.summary(named.chat).unwrap().title.as_deref(),
            Some("Mine")
        );
    }

    #[test]
    fn a_window_wider_than_the_models_is_narrowed_and_told() {
        let bench = bench(8);
        bench.host.set_settings(Settings {
            context_tokens: Some(1 << 20),
            ..bench.host.settings()
        });
        bench.load(MODEL);
        bench.ended(bench.ask("Good morning"));
        let ModelState::Ready {
            warning,
            context_tokens,
            trained_context_tokens,
            ..
        } = bench.host.model()
        else {
            panic!("{:?}", bench.host.model());
        };
        assert_eq!(context_tokens, trained_context_tokens);
        assert!(warning.unwrap().contains("wider"));
    }

    #[test]
    fn an_answer_that_nobody_makes_can_be_ended() {
        let bench = bench(8);
        let question = bench.store.begin_chat("Good morning").unwrap();
        let left = bench.store.begin_answer(question.id, "tiny").unwrap();
        bench.host.stop(left.id).unwrap();
        assert_eq!(bench.store.turn(left.id).unwrap().state, TurnState::Stopped);
        let left = bench.store.begin_answer(question.id, "tiny").unwrap();
        bench.host.settle(left.id).unwrap();
        assert_eq!(bench.store.turn(left.id).unwrap().state, TurnState::Interrupted);
    }
}

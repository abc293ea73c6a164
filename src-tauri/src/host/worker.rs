//! The thread that loads models and begins answers and titles. It waits for nothing but a model's loading, so that what
//! is asked for begins at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use reprise_engine::{EngineError, LoadOptions};
use reprise_library::assistant::{Assistant, AssistantError};
use reprise_library::chats::TurnId;
use reprise_library::converse::TokenCounts;
use reprise_library::inspection::Readings;
use reprise_library::running::Published;

use super::ahead::Looking;
use super::answering::Answering;
use super::titles::Titling;
use super::{Handle, Job, LoadRequest, Loaded, Model, ModelNumber, Shared, Work, fault, lock};
use crate::types::{Failure, ModelState};

pub(super) struct Worker {
    shared: Arc<Shared>,
    later: Sender<Job>,
    model: Option<Arc<Model>>,
    models: u64,
    /// Those that make answers and titles, and those that have ended since the last look.
    threads: Vec<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, later: Sender<Job>) -> Worker {
        Worker {
            shared,
            later,
            model: None,
            models: 0,
            threads: Vec::new(),
        }
    }

    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            if let Job::Quit(done) = job {
                self.join();
                self.model = None;
                // Nobody waits any more when the farewell took too long.
                let _ = done.send(());
                return;
            }
            self.take(job);
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Load(request) => self.load(*request),
            Job::Answer(turn) => self.answer(turn),
            Job::WithModel(work) => work(self.model.as_deref()),
            Job::ReadAhead => self.read_ahead(),
            Job::Title => self.title(),
            Job::Broken(number) => self.give_up(number),
            Job::Quit(_) => {} // the end of `run`
        }
    }

    fn load(&mut self, request: LoadRequest) {
        let shown_name = request.shown_name();
        let LoadRequest {
            file,
            name,
            settings,
            profiles,
            store,
            index,
            is_published,
        } = request;
        let is_last = self.shared.waiting_loads.fetch_sub(1, Ordering::Relaxed) == 1;
        if self.shared.is_leaving() || !is_last {
            return; // nobody waits for it, or a later request takes its place
        }
        self.shared.set_model(ModelState::Loading {
            name: shown_name.clone(),
        });
        self.put_off();
        // The old model's memory is given back before the new one takes its own.
        self.unload();
        let options = LoadOptions {
            tunes_when_idle: profiles.is_some() && reprise_library::folders::tunes_when_idle(),
            profiles,
            store,
            ..settings.load_options()
        };
        let loaded = file.and_then(|file| {
            let load = || load_with_fitting_window(&file, options);
            catch_unwind(AssertUnwindSafe(load))
                .unwrap_or_else(|_| Err(Failure::new(fault("loading the model"))))
        });
        match loaded {
            Ok((assistant, warning)) => {
                let published = is_published.then(|| publish(&assistant)).flatten();
                self.install(assistant, published, index, name, warning);
            }
            Err(Failure { message }) => self.shared.set_model(ModelState::Failed {
                name: shown_name,
                error: message,
            }),
        }
    }

    fn install(
        &mut self,
        assistant: Assistant,
        published: Option<Published>,
        index: Option<PathBuf>,
        name: Option<String>,
        warning: Option<String>,
    ) {
        let shared = &self.shared;
        let writer = Arc::clone(assistant.writer());
        let info = writer.info();
        let state = ModelState::Ready {
            name: name.unwrap_or_else(|| info.name.clone()),
            quantisation: info.quantisation.clone(),
            context_tokens: info.context_tokens,
            trained_context_tokens: info.trained_context_tokens,
            threads: info.threads,
            backend: assistant.engine().backend_name().to_string(),
            warning: warning.or_else(|| writer.warning().map(str::to_owned)),
            store_fault: assistant.engine().store_fault().map(str::to_owned),
        };
        let loaded = Arc::new(Loaded {
            writer,
            counts: TokenCounts::default(),
            readings: Readings::default(),
        });
        *lock(&shared.loaded) = Some(Arc::clone(&loaded));
        shared.pictures.show(Some(assistant.engine().shared_snapshot()));
        self.models += 1;
        self.model = Some(Arc::new(Model {
            number: ModelNumber(self.models),
            assistant,
            loaded,
            index,
            servers: Mutex::default(),
            _published: published,
        }));
        shared.set_model(state);
        shared.queue_loading();
        let _ = self.later.send(Job::Title);
        let _ = self.later.send(Job::ReadAhead);
    }

    /// Finds on a thread of its own what the model could read ahead, since that takes a while; answers go on meanwhile.
    fn read_ahead(&mut self) {
        let Some(model) = self.model.as_ref() else { return };
        let (Some(index), true) = (model.index.clone(), lock(&self.shared.settings).read_ahead) else {
            return;
        };
        let looking = Looking {
            model: model.number,
            writer: Arc::clone(&model.loaded.writer),
            index,
            shared: Arc::clone(&self.shared),
            later: self.later.clone(),
        };
        match thread::Builder::new()
            .name("reading ahead".into())
            .spawn(move || looking.look())
        {
            Ok(thread) => self.threads.push(thread),
            Err(error) => tracing::warn!(%error, "nothing is read ahead"),
        }
    }

    /// Stops what runs, for another model to go on with, and waits until it has stopped.
    fn put_off(&mut self) {
        {
            let desk = lock(&self.shared.desk);
            for request in &desk.requests {
                if let Work::Runs(handle) = &request.work {
                    handle.is_put_off.store(true, Ordering::Relaxed);
                    handle.cancel.cancel();
                }
            }
            desk.cancel_title();
        }
        self.join();
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread ended by a fault of its own");
            }
        }
    }

    fn unload(&mut self) {
        *lock(&self.shared.loaded) = None;
        self.shared.pictures.show(None);
        self.model = None;
    }

    /// The engine's thread is gone: a person's Try again loads the model anew.
    fn give_up(&mut self, number: ModelNumber) {
        if self.model.as_ref().is_none_or(|model| model.number != number) {
            return; // told already, or loaded anew since
        }
        self.unload();
        let name = lock(&self.shared.model).name().to_owned();
        self.shared.set_model(ModelState::Failed {
            name,
            error: fault("answering"),
        });
    }

    fn answer(&mut self, turn: TurnId) {
        let shared = Arc::clone(&self.shared);
        let handle = Handle::default();
        let chat = {
            let mut desk = lock(&shared.desk);
            let Some(request) = desk.find(turn) else {
                drop(desk);
                return self.title(); // stopped while it waited
            };
            request.work = Work::Runs(handle.clone());
            request.chat
        };
        let ended = Answering::new(&shared, &self.later, chat, turn);
        let Some(model) = self.model.clone() else {
            let reason = match &*lock(&shared.model) {
                ModelState::Failed { error, .. } => error.clone(),
                _ => "no model is loaded; choose one in the settings".into(),
            };
            return ended.fail(Failure::new(reason));
        };
        let spare = ended.clone();
        if let Err(failure) = self.spawn("answer", move || ended.run(&model, &handle)) {
            spare.fail(failure);
        }
    }

    fn title(&mut self) {
        let Some(model) = self.model.clone() else {
            return; // asked again when there is one
        };
        if let Some(titling) = Titling::begin(&self.shared, &self.later) {
            let spare = titling.clone();
            if let Err(failure) = self.spawn("title", move || titling.run(&model)) {
                spare.give_up();
                tracing::warn!(message = failure.message, "no title could be made");
            }
        }
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        self.threads.retain(|thread| !thread.is_finished());
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(work)
            .map_err(|error| {
                Failure::new(format!(
                    "the system has no room for another answer ({error}); stop one, or close other programs"
                ))
            })?;
        self.threads.push(thread);
        Ok(())
    }
}

/// Shows the engine to the person's other programs. Where that cannot be, chats go on without.
fn publish(assistant: &Assistant) -> Option<Published> {
    match Published::start("app", assistant.engine().shared_snapshot()) {
        Ok(published) => Some(published),
        Err(error) => {
            tracing::warn!(%error, "other programs do not see the engine");
            None
        }
    }
}

/// Loads a model. A window that is wider than this model's, chosen for another one perhaps, is narrowed; that, or that the
/// KV memory holds less than the window, comes along as a sentence.
fn load_with_fitting_window(
    file: &Path,
    options: LoadOptions,
) -> Result<(Assistant, Option<String>), Failure> {
    let (assistant, warning) = match Assistant::load(file, &options) {
        Err(AssistantError::Engine(EngineError::Window { asked, trained, .. })) if asked > trained => {
            let narrower = LoadOptions {
                context_tokens: Some(trained),
                ..options
            };
            let warning = format!(
                "the window of {asked} tokens in the settings is wider than this model's own; it has {trained} tokens now"
            );
            (Assistant::load(file, &narrower)?, Some(warning))
        }
        loaded => (loaded?, None),
    };
    let asked = assistant.engine().info().context_tokens;
    let held = assistant.writer().info().context_tokens;
    let shortage = (held < asked).then(|| {
        format!(
            "the memory for context in the settings holds {held} of the window's {asked} tokens; it has {held} tokens now"
        )
    });
    Ok((assistant, shortage.or(warning)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::mpsc::channel;

    use reprise_library::chats::{ChatStore, TurnState};

    use super::*;
    use crate::events::Events;
    use crate::host::Host;
    use crate::types::Settings;

    #[test]
    fn an_engine_that_dies_fails_its_answers_and_is_loaded_anew_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(ChatStore::open(folder.path().join("chats.sqlite")).unwrap().0);
        let settings = Settings {
            max_answer_tokens: 8,
            threads: Some(1),
            ..Settings::default()
        };
        let shared = Shared::new(Arc::clone(&store), Events::default(), settings.clone()).unwrap();
        let (jobs, queue) = channel();
        let mut worker = Worker::new(Arc::clone(&shared), jobs.clone());
        let host = Host { shared, jobs };
        let load = || {
            host.load(LoadRequest {
                file: Ok(PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                    .join("../tests/golden/tiny/tiny-llama3-q4_k.gguf")),
                name: None,
                settings: settings.clone(),
                profiles: None,
                index: None,
                store: None,
                is_published: false,
            });
        };
        let ask = || {
            let question = store.begin_chat("Good morning").unwrap();
            let answer = store.begin_answer(question.id, "tiny").unwrap();
            host.answer(&answer);
            answer.id
        };
        load();
        worker.take(queue.recv().unwrap());
        let engine = worker.model.as_ref().unwrap().assistant.engine();
        engine.with_worker(|_| panic!("for this test")).unwrap_err();
        let turn = ask();
        while matches!(host.model(), ModelState::Ready { .. }) {
            worker.take(queue.recv().unwrap());
        }
        let ModelState::Failed { error, .. } = host.model() else {
            panic!("{:?}", host.model());
        };
        assert!(error.contains("Try again"), "{error}");
        worker.join();
        let failed = store.turn(turn).unwrap();
        assert_eq!(failed.state, TurnState::Failed);
        assert!(failed.error.unwrap().contains("load the model again"));
        assert!(host.loaded().is_none() && host.snapshot().is_none());

        load();
        let turn = ask();
        while host.under_way().iter().any(|answer| answer.turn == turn) {
            worker.take(queue.recv().unwrap());
        }
        assert!(!store.turn(turn).unwrap().text.is_empty());
    }
}

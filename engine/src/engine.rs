//! The engine as its callers see it: a handle to the thread that owns the model.

use crate::api::{
    Answer, CancelToken, EngineError, Event, GenerateOptions, LoadOptions, ModelInfo, Request, TokenId,
};
use crate::load::{Loaded, Work};
use crate::snapshot::Snapshot;
use crate::worker::Worker;
use reprise_model::gguf::Gguf;
use reprise_model::tokenizer::Tokenizer;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A new picture of the engine is made at most this often.
const PICTURE_INTERVAL: Duration = Duration::from_millis(100);
/// An idle engine looks at the machine's memory this often.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);

/// A model loaded and ready. Requests from several threads run side by side, up to four at once; each gets the answer
/// it would get alone. What ended requests computed is kept while there is room, so that a prompt that begins like one
/// of them reads only what is new. Dropping the engine stops what runs.
pub struct Engine {
    info: ModelInfo,
    gguf: Arc<Gguf>,
    tokenizer: Arc<Tokenizer>,
    backend_name: String,
    work: Work,
    store_fault: Option<String>,
    picture: Arc<Mutex<Snapshot>>,
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    Run(Request),
    Do(Box<dyn FnOnce(&mut Worker) + Send>),
}

impl Engine {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// When the file is broken, holds a model that is not supported, or an option cannot be met.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Engine, EngineError> {
        let loaded = Loaded::load(path, options)?;
        let gguf = Arc::clone(&loaded.gguf);
        let worker = Worker::new(loaded, options)?;
        let (sender, receiver) = channel();
        let picture = Arc::new(Mutex::new(Snapshot::default()));
        let mut engine = Engine {
            info: worker.info().clone(),
            gguf,
            tokenizer: Arc::clone(worker.tokenizer()),
            backend_name: worker.backend_name().to_owned(),
            work: worker.work(),
            store_fault: worker.store_fault().map(str::to_owned),
            picture: Arc::clone(&picture),
            orders: Some(sender),
            thread: None,
        };
        let thread = std::thread::Builder::new()
            .name("reprise-engine".into())
            .spawn(move || serve(worker, &receiver, &picture))
            .map_err(crate::cpu::CpuError::Threads)?;
        engine.thread = Some(thread);
        Ok(engine)
    }

    /// Facts about the model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The model's file.
    pub fn gguf(&self) -> &Gguf {
        &self.gguf
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The model's tokenizer, to be kept.
    pub fn shared_tokenizer(&self) -> Arc<Tokenizer> {
        Arc::clone(&self.tokenizer)
    }

    /// The backend's name, for example `cpu avx2`.
    pub fn backend_name(&self) -> &str {
        &self.backend_name
    }

    /// What one token costs, for measuring.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Why nothing is kept beyond this run, where it was to be.
    pub fn store_fault(&self) -> Option<&str> {
        self.store_fault.as_deref()
    }

    /// The latest picture of the engine, at most a tenth of a second old while anything runs.
    pub fn snapshot(&self) -> Snapshot {
        self.picture
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The place where the latest picture stands, for who shows it while the engine is in other hands.
    pub fn shared_snapshot(&self) -> Arc<Mutex<Snapshot>> {
        Arc::clone(&self.picture)
    }

    /// Hands in a request and returns at once; the request's own functions are told what happens.
    pub fn submit(&self, request: Request) {
        self.order(Order::Run(request));
    }

    fn order(&self, order: Order) {
        let Some(orders) = &self.orders else { return };
        if let Err(failed) = orders.send(order)
            && let Order::Run(request) = failed.0
        {
            (request.on_end)(Err(EngineError::Stopped));
        }
    }

    /// Runs something on the engine's thread, between two graph calls, and waits for it.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn with_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let (sender, receiver) = channel();
        self.order(Order::Do(Box::new(move |worker| {
            let _ = sender.send(work(worker));
        })));
        receiver.recv().map_err(|_| EngineError::Stopped)
    }

    /// Lets go what ended requests left, and gives the memory back to the system.
    pub fn forget(&self) {
        let _ = self.with_worker(Worker::forget);
    }

    /// Runs one request; blocks until it ends. `on_event` is called on this thread.
    ///
    /// # Errors
    /// When the prompt is empty or does not fit, an option is out of range, memory is short, or a graph call fails.
    /// What had been computed by then is kept.
    pub fn generate(
        &self,
        prompt: &[TokenId],
        options: &GenerateOptions,
        cancel: &CancelToken,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, EngineError> {
        enum News {
            Prefill(usize, usize, usize, Duration),
            Text(String),
            End(Box<Result<Answer, EngineError>>),
        }
        let (sender, receiver) = channel();
        let end = sender.clone();
        self.submit(Request {
            prompt: prompt.to_vec(),
            options: options.clone(),
            cancel: cancel.clone(),
            on_event: Box::new(move |event| {
                let news = match event {
                    Event::Prefill {
                        done_tokens,
                        total_tokens,
                        reused_tokens,
                        reading_time,
                    } => News::Prefill(done_tokens, total_tokens, reused_tokens, reading_time),
                    Event::Text(text) => News::Text(text.to_owned()),
                };
                let _ = sender.send(news);
            }),
            on_end: Box::new(move |result| {
                let _ = end.send(News::End(Box::new(result)));
            }),
        });
        while let Ok(news) = receiver.recv() {
            match news {
                News::Prefill(done_tokens, total_tokens, reused_tokens, reading_time) => {
                    on_event(Event::Prefill {
                        done_tokens,
                        total_tokens,
                        reused_tokens,
                        reading_time,
                    });
                }
                News::Text(text) => on_event(Event::Text(&text)),
                News::End(result) => return *result,
            }
        }
        Err(EngineError::Stopped)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the engine's thread ended by a mistake of its own");
        }
    }
}

/// The thread: takes orders between turns, and waits only when there is nothing to do.
fn serve(mut worker: Worker, orders: &Receiver<Order>, picture: &Mutex<Snapshot>) {
    let mut drawn: Option<Instant> = None;
    let mut draw = |worker: &mut Worker, now: bool| {
        if now || drawn.is_none_or(|at| at.elapsed() >= PICTURE_INTERVAL) {
            *picture.lock().unwrap_or_else(PoisonError::into_inner) = worker.snapshot();
            drawn = Some(Instant::now());
        }
    };
    draw(&mut worker, true);
    let mut is_busy = false;
    loop {
        let idle_work = !is_busy && worker.has_idle_work();
        let order = if is_busy || idle_work {
            orders
                .try_recv()
                .map_err(|error| error == std::sync::mpsc::TryRecvError::Disconnected)
        } else {
            orders
                .recv_timeout(IDLE_INTERVAL)
                .map_err(|error| error == RecvTimeoutError::Disconnected)
        };
        match order {
            Ok(Order::Run(request)) => {
                worker.submit(request);
                // More may have come at once: they should be admitted together.
                is_busy = true;
                continue;
            }
            Ok(Order::Do(work)) => {
                work(&mut worker);
                draw(&mut worker, true);
                continue;
            }
            Err(true) => {
                worker.stop_all();
                return;
            }
            Err(false) if idle_work => {
                worker.idle_turn();
                is_busy = worker.is_busy();
                draw(&mut worker, false);
                continue;
            }
            Err(false) => {}
        }
        let was_busy = is_busy;
        is_busy = worker.turn();
        let rests = was_busy && !is_busy;
        if is_busy || rests || worker.memory_changed() {
            draw(&mut worker, rests);
        }
    }
}

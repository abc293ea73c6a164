//! What all connections share.

use std::sync::Arc;
use std::time::SystemTime;

use axum::http::StatusCode;
use reprise_engine::snapshot::{PhaseView, Snapshot};
use reprise_engine::worker::LANES;
use reprise_library::assistant::Assistant;
use reprise_model::template::ChatTemplate;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::error::ApiError;
use super::gate::Gate;
use super::metrics::Meters;
use super::response::unix_seconds;

/// What the person set.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Requests that may wait for a lane.
    pub waiting: usize,
    /// Most tokens of an answer whose client names no limit; none takes what the window holds.
    pub answer_tokens: Option<usize>,
}

/// One model, ready to serve.
pub struct Server {
    pub assistant: Assistant,
    /// What clients call the model.
    pub model: String,
    /// When its file was made.
    pub created: u64,
    pub gate: Gate,
    pub limits: Limits,
    pub meters: Arc<Meters>,
    /// Texts that end an answer of this model.
    stops: Vec<String>,
    /// A place for each lane, and for each request that may wait for one.
    places: Arc<Semaphore>,
    /// True from when the server is told to end.
    stopping: watch::Receiver<bool>,
}

impl Server {
    pub fn new(
        assistant: Assistant,
        model: String,
        file_time: SystemTime,
        gate: Gate,
        limits: Limits,
        stopping: watch::Receiver<bool>,
    ) -> Server {
        let engine = assistant.engine();
        let template = ChatTemplate::from_gguf(engine.gguf(), engine.tokenizer());
        Server {
            stops: template.stop_strings().to_vec(),
            assistant,
            model,
            created: unix_seconds(file_time),
            gate,
            limits,
            meters: Arc::default(),
            places: Arc::new(Semaphore::new(LANES + limits.waiting)),
            stopping,
        }
    }

    /// The client's stop texts and the model's own.
    pub fn with_stops(&self, mut asked: Vec<String>) -> Vec<String> {
        asked.extend_from_slice(&self.stops);
        asked
    }

    /// A place among those that are answered or wait.
    pub fn place(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let text = format!(
                "{} requests are answered or wait already; try again in a few seconds, or let more wait (--queue)",
                LANES + self.limits.waiting
            );
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text).with_code("queue_full")
        })
    }

    /// Waits until the server is told to end.
    pub async fn stopping(&self) {
        wait_for_stop(self.stopping.clone()).await;
    }

    pub fn snapshot(&self) -> Snapshot {
        self.assistant.engine().snapshot()
    }
}

/// Waits until the switch is on; a switch that is gone counts as on.
pub async fn wait_for_stop(mut stopping: watch::Receiver<bool>) {
    let _ = stopping.wait_for(|&stopping| stopping).await;
}

/// Requests by phase: waiting, reading, answering.
pub fn phases(snapshot: &Snapshot) -> [usize; 3] {
    let mut counts = [0; 3];
    for lane in &snapshot.lanes {
        let index = match lane.phase {
            PhaseView::Queued { .. } => 0,
            PhaseView::Prefill { .. } => 1,
            PhaseView::Decode { .. } => 2,
        };
        counts[index] += 1;
    }
    counts
}

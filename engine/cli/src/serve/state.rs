//! What all connections share.

use std::sync::Arc;
use std::time::SystemTime;

use axum::http::StatusCode;
use reprise_engine::snapshot::{PhaseView, Snapshot};
use reprise_engine::worker::LANES;
use reprise_engine::{Owner, TokenId};
use reprise_library::assistant::{Assistant, Message};
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
    /// Under which what clients send is kept.
    pub owner: Owner,
    pub meters: Arc<Meters>,
    /// Bytes of the model's longest token.
    longest_token_bytes: usize,
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
        owner: Owner,
        stopping: watch::Receiver<bool>,
    ) -> Server {
        let tokenizer = assistant.engine().tokenizer();
        let ids = 0..TokenId::try_from(tokenizer.vocab_size()).unwrap_or(TokenId::MAX);
        let longest = ids.filter_map(|id| tokenizer.token_text(id)).map(str::len).max();
        Server {
            longest_token_bytes: longest.unwrap_or(1).max(1),
            assistant,
            model,
            created: unix_seconds(file_time),
            gate,
            limits,
            owner,
            meters: Arc::default(),
            places: Arc::new(Semaphore::new(LANES + limits.waiting)),
            stopping,
        }
    }

    /// Refuses messages that no window holds, before time is spent on their tokens.
    pub fn check_length(&self, messages: &[Message]) -> Result<(), ApiError> {
        let bytes: usize = messages
            .iter()
            .flat_map(|message| &message.parts)
            .map(|part| part.text.len())
            .sum();
        let (least_tokens, window) = (
            bytes / self.longest_token_bytes,
            self.assistant.writer().info().context_tokens,
        );
        if least_tokens <= window {
            return Ok(());
        }
        let text = format!(
            "the messages have more than {least_tokens} tokens, and the window holds {window}; shorten them, or load a \
             model with a larger window (--context)"
        );
        Err(ApiError::field("messages", text).with_code("context_length_exceeded"))
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

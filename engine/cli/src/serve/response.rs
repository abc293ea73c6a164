//! What a client is told: answers whole or in chunks, and how many tokens they took.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{SystemTime, UNIX_EPOCH};

use reprise_engine::{Answer, StopReason};
use serde_json::{Value, json};

/// Clients that compare this learn that another build answers.
const FINGERPRINT: &str = concat!("reprise-", env!("CARGO_PKG_VERSION"));

/// What all chunks of an answer have in common.
#[derive(Debug, Clone)]
pub struct Frame {
    id: String,
    created: u64,
    model: String,
    /// Whether the client wants the usage at the end of a stream.
    include_usage: bool,
}

impl Frame {
    pub fn new(model: &str, include_usage: bool) -> Frame {
        Frame {
            id: format!("chatcmpl-{:016x}", RandomState::new().hash_one(SystemTime::now())),
            created: unix_seconds(SystemTime::now()),
            model: model.to_owned(),
            include_usage,
        }
    }

    /// A whole answer.
    pub fn whole(&self, answer: &Answer) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": answer.text, "refusal": null },
                "logprobs": null,
                "finish_reason": finish_reason(&answer.stop),
            }],
            "usage": usage(answer),
            "system_fingerprint": FINGERPRINT,
        })
    }

    /// The first chunk.
    pub fn role(&self) -> Value {
        self.chunk(
            json!({ "role": "assistant", "content": "", "refusal": null }),
            None,
        )
    }

    /// A piece of the answer.
    pub fn piece(&self, text: &str) -> Value {
        self.chunk(json!({ "content": text }), None)
    }

    /// The last chunks.
    pub fn end(&self, answer: &Answer) -> Vec<Value> {
        let mut chunks = vec![self.chunk(json!({}), Some(finish_reason(&answer.stop)))];
        if self.include_usage {
            let mut last = self.chunk(json!({}), None);
            last["choices"] = json!([]);
            last["usage"] = usage(answer);
            chunks.push(last);
        }
        chunks
    }

    fn chunk(&self, delta: Value, finish_reason: Option<&str>) -> Value {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }],
            "system_fingerprint": FINGERPRINT,
        });
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

/// OpenAI knows two ends: the model's own, and one that was cut.
fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::EndOfTurn | StopReason::StopString(_) => "stop",
        StopReason::MaxTokens
        | StopReason::WindowFull
        | StopReason::Repeating
        | StopReason::Capacity
        | StopReason::Cancelled => "length",
    }
}

fn usage(answer: &Answer) -> Value {
    json!({
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.answer_tokens,
        "total_tokens": answer.prompt_tokens + answer.answer_tokens,
        "prompt_tokens_details": { "cached_tokens": answer.reused_tokens },
    })
}

/// A model as `GET /v1/models` lists it.
pub fn model(id: &str, created: u64) -> Value {
    json!({ "id": id, "object": "model", "created": created, "owned_by": "reprise" })
}

pub fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn answer(stop: StopReason) -> Answer {
        Answer {
            text: "yes".into(),
            stop,
            prompt_tokens: 20,
            reused_tokens: 12,
            moved_tokens: 0,
            recomputed_tokens: 0,
            answer_tokens: 3,
            waiting_time: Duration::ZERO,
            time_to_first_token: Duration::ZERO,
            decode_time: Duration::ZERO,
            steps: Default::default(),
            explanation: None,
        }
    }

    #[test]
    fn an_answer_is_as_openai_says() {
        let whole = Frame::new("m", false).whole(&answer(StopReason::EndOfTurn));
        assert!(whole["id"].as_str().unwrap().starts_with("chatcmpl-"));
        assert_eq!(whole["choices"][0]["message"]["content"], "yes");
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
        assert_eq!(
            whole["usage"],
            json!({
                "prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23,
                "prompt_tokens_details": { "cached_tokens": 12 }
            })
        );
    }

    #[test]
    fn a_stream_has_a_role_pieces_a_reason_and_the_usage_where_it_is_wanted() {
        let frame = Frame::new("m", true);
        assert_eq!(frame.role()["choices"][0]["delta"]["role"], "assistant");
        let piece = frame.piece("ye");
        assert_eq!(piece["choices"][0]["delta"], json!({ "content": "ye" }));
        assert_eq!(piece["usage"], Value::Null);
        let end = frame.end(&answer(StopReason::MaxTokens));
        assert_eq!(end[0]["choices"][0]["finish_reason"], "length");
        assert_eq!(
            (&end[1]["choices"], &end[1]["usage"]["total_tokens"]),
            (&json!([]), &json!(23))
        );
        let plain = Frame::new("m", false);
        assert!(plain.piece("x").get("usage").is_none());
        assert_eq!(plain.end(&answer(StopReason::WindowFull)).len(), 1);
        assert_ne!(frame.role()["id"], plain.role()["id"]);
    }
}

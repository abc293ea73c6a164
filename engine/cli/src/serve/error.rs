//! Errors as OpenAI's clients read them: a status, and `{"error": {"message", "type", "param", "code"}}`.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use reprise_engine::EngineError;
use reprise_library::assistant::AssistantError;
use reprise_model::template::TemplateError;
use serde_json::{Value, json};

/// Seconds after which a refused client may come again.
const RETRY_SECONDS: u64 = 5;

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub status: StatusCode,
    /// What is wrong and what to do.
    pub message: String,
    /// The field that is wrong.
    pub param: Option<String>,
    /// What programs tell errors apart by.
    pub code: Option<&'static str>,
}

impl ApiError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> ApiError {
        ApiError {
            status,
            message: message.into(),
            param: None,
            code: None,
        }
    }

    /// A request that makes no sense, by the field that is wrong.
    pub fn field(param: impl Into<String>, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, message).with_param(param)
    }

    /// A field of OpenAI's that this server does not know how to honour.
    pub fn unsupported(param: impl Into<String>, message: impl Into<String>) -> ApiError {
        ApiError::field(param, message).with_code("unsupported_parameter")
    }

    pub fn with_param(self, param: impl Into<String>) -> ApiError {
        ApiError {
            param: Some(param.into()),
            ..self
        }
    }

    pub fn with_code(self, code: &'static str) -> ApiError {
        ApiError {
            code: Some(code),
            ..self
        }
    }

    /// The server is about to end.
    pub fn stopping() -> ApiError {
        let text = "the server is stopping; start it again with: reprise serve";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text).with_code("stopping")
    }

    /// The body, and what a stream that has begun says instead of an answer.
    pub fn json(&self) -> Value {
        let kind = match self.status {
            status if status.is_server_error() => "server_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::UNAUTHORIZED => "authentication_error",
            _ => "invalid_request_error",
        };
        json!({
            "error": { "message": self.message, "type": kind, "param": self.param, "code": self.code }
        })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status, &self.json());
        let headers = response.headers_mut();
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

/// A response of JSON.
pub fn json_response(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> ApiError {
        let message = error.to_string();
        match error {
            EngineError::EmptyPrompt => ApiError::field("messages", message),
            EngineError::PromptTooLong { .. } | EngineError::DoesNotFit { .. } => {
                ApiError::field("messages", message).with_code("context_length_exceeded")
            }
            EngineError::BadOption { name, .. } => ApiError::field(name.replace('-', "_"), message),
            EngineError::MemoryShort { .. } | EngineError::Pool(_) => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message).with_code("memory_short")
            }
            EngineError::Stopped => {
                let text = "the engine has stopped; start the server again with: reprise serve";
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
            _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message),
        }
    }
}

impl From<AssistantError> for ApiError {
    fn from(error: AssistantError) -> ApiError {
        match error {
            AssistantError::Engine(error) => error.into(),
            AssistantError::Template(TemplateError::Failed(why)) => {
                let text = format!("the model's chat template failed: {why}; use another model");
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
            AssistantError::Template(error) => ApiError::field("messages", error.to_string()),
            error => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_says_becomes_the_status_that_clients_act_on() {
        let long = ApiError::from(EngineError::PromptTooLong {
            prompt_tokens: 20,
            window: 10,
        });
        assert_eq!(
            (long.status.as_u16(), long.code),
            (400, Some("context_length_exceeded"))
        );
        assert_eq!(long.json()["error"]["type"], json!("invalid_request_error"));
        let short = ApiError::from(EngineError::MemoryShort { reason: "x".into() });
        assert_eq!((short.status.as_u16(), short.code), (503, Some("memory_short")));
        let response = short.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "5");
        let option = ApiError::from(EngineError::BadOption {
            name: "top-p",
            value: "3".into(),
            range: "x",
        });
        assert_eq!(option.param.as_deref(), Some("top_p"));
    }
}

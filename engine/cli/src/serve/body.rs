//! Reads a request's body, bounded in kind, size and time.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use futures_util::StreamExt;

use super::error::ApiError;

/// A body has this long to come.
const READ_TIME: Duration = Duration::from_secs(30);
/// A body that is too large is read on for this long and thrown away, so that the client gets to hear why.
const DRAIN_TIME: Duration = Duration::from_secs(3);

/// Reads the body of a request, which must be JSON of at most `most` bytes.
pub async fn read(request: Request, most: usize) -> Result<Bytes, ApiError> {
    check_kind(request.headers())?;
    let said = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let body = request.into_body();
    let read = tokio::time::timeout(READ_TIME, collect(body, most, said.unwrap_or(0)));
    match read.await {
        Ok(result) => result,
        Err(_) => {
            let text = format!(
                "the body did not come within {} s; send it at once",
                READ_TIME.as_secs()
            );
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, text))
        }
    }
}

async fn collect(body: Body, most: usize, said: u64) -> Result<Bytes, ApiError> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::with_capacity((said as usize).min(most));
    let mut is_too_large = said > most as u64;
    while !is_too_large && let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                format!("the body was cut short: {error}; send it again"),
            )
        })?;
        is_too_large = bytes.len() + piece.len() > most;
        if !is_too_large {
            bytes.extend_from_slice(&piece);
        }
    }
    if !is_too_large {
        return Ok(Bytes::from(bytes));
    }
    drop(bytes);
    let _ = tokio::time::timeout(DRAIN_TIME, async {
        while let Some(Ok(_)) = stream.next().await {}
    })
    .await;
    let text = format!(
        "the body has more than {most} bytes; shorten the messages, or start the server with --max-body"
    );
    Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, text).with_code("body_too_large"))
}

/// A form or a plain text is what a page can send without asking; JSON is not.
fn check_kind(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    let kind = kind
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let refused = |text: &str| Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    if !kind.eq_ignore_ascii_case(b"application/json") {
        return refused("the body must be JSON: send Content-Type: application/json");
    }
    match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(()),
        Some(_) => refused("a compressed body cannot be read; send it without Content-Encoding"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(work)
    }

    fn request(kind: &str, body: &'static str) -> Request {
        Request::builder()
            .header("content-type", kind)
            .body(Body::from(body))
            .unwrap()
    }

    #[test]
    fn bodies_are_json_and_no_larger_than_allowed() {
        let read = |kind, most| block_on(read(request(kind, "{\"a\": 1}"), most));
        assert_eq!(read("application/json", 8).unwrap().len(), 8);
        assert!(read("Application/JSON; charset=utf-8", 8).is_ok());
        assert_eq!(
            read("application/json", 7).unwrap_err().status,
            StatusCode::PAYLOAD_TOO_LARGE
        );
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "",
        ] {
            assert_eq!(
                read(kind, 8).unwrap_err().status,
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "{kind}"
            );
        }
    }
}

//! `POST /v1/chat/completions`: from a request's body to its answer, whole or as a stream.
//!
//! A client that goes away takes its request along: what stands for it here is dropped, and the engine is told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use reprise_engine::{
    Answer, CancelToken, EngineError, Event, GenerateOptions, Request as EngineRequest, StopReason, TokenId,
};
use reprise_library::assistant::LaidOut;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::body;
use super::error::{ApiError, json_response};
use super::request::ChatRequest;
use super::response::Frame;
use super::state::Server;

/// The engine refuses a request within a graph call. One that has heard nothing for this long waits in line, and its
/// stream begins.
const HEARD_WITHIN: Duration = Duration::from_secs(5);
/// While a prompt is read or waits, something is sent this often, so that nobody on the way takes the line for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// What the engine says of a request.
enum News {
    /// It has a lane.
    Begun,
    Text(String),
    End(Box<Answer>),
}

/// A request in the engine; dropping it cancels it.
struct Running {
    news: UnboundedReceiver<Result<News, EngineError>>,
    cancel: CancelToken,
    _place: OwnedSemaphorePermit,
}

impl Running {
    /// Hands a request in.
    fn start(
        server: &Server,
        place: OwnedSemaphorePermit,
        prompt: Vec<TokenId>,
        options: GenerateOptions,
        tells_text: bool,
    ) -> Running {
        let (sender, news) = unbounded_channel();
        let cancel = CancelToken::default();
        let meters = Arc::clone(&server.meters);
        let told = sender.clone();
        let mut is_begun = false;
        // Nobody listens any more when the client has gone: then there is nothing to tell.
        server.assistant.engine().submit(EngineRequest {
            prompt,
            options,
            cancel: cancel.clone(),
            on_event: Box::new(move |event| match event {
                Event::Prefill { .. } if !is_begun => {
                    is_begun = true;
                    let _ = told.send(Ok(News::Begun));
                }
                Event::Text(text) if tells_text => drop(told.send(Ok(News::Text(text.to_owned())))),
                Event::Prefill { .. } | Event::Text(_) => {}
            }),
            on_end: Box::new(move |result| {
                if let Ok(answer) = &result {
                    meters.answered(answer);
                }
                let _ = sender.send(result.map(|answer| News::End(Box::new(answer))));
            }),
        });
        Running {
            news,
            cancel,
            _place: place,
        }
    }

    /// What comes next; an end at the latest when the server is told to stop.
    async fn next(&mut self, server: &Server) -> Result<News, ApiError> {
        tokio::select! {
            biased;
            news = self.news.recv() => match news {
                Some(Ok(News::End(answer))) if answer.stop == StopReason::Cancelled => Err(ApiError::stopping()),
                Some(news) => Ok(news?),
                None => Err(EngineError::Stopped.into()),
            },
            () = server.stopping() => Err(ApiError::stopping()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Answers.
pub async fn completions(State(server): State<Arc<Server>>, request: Request) -> Result<Response, ApiError> {
    let bytes = body::read(request, server.limits.body_bytes).await?;
    let place = server.place()?;
    // Reading the tokens of a long prompt takes its time, and others shall not wait for it.
    let prepared = {
        let server = Arc::clone(&server);
        tokio::task::spawn_blocking(move || prepare(&server, &bytes))
    };
    let Prepared {
        prompt,
        options,
        frame,
        is_stream,
    } = prepared.await.map_err(|_| {
        let text = "the request could not be read; this is a fault in Reprise";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    })??;
    let mut running = Running::start(&server, place, prompt, options, is_stream);
    if !is_stream {
        loop {
            if let News::End(answer) = running.next(&server).await? {
                return Ok(json_response(StatusCode::OK, &frame.whole(&answer)));
            }
        }
    }
    // What is refused has a status of its own, which comes before the first line of a stream.
    let first = match tokio::time::timeout(HEARD_WITHIN, running.next(&server)).await {
        Ok(news) => Some(news?),
        Err(_) => None,
    };
    let mut telling = Telling {
        server,
        running,
        sent: VecDeque::from([data(&frame.role())]),
        frame,
        is_over: false,
    };
    if let Some(news) = first {
        telling.tell(Ok(news));
    }
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(telling.into_stream())
        .keep_alive(keep_alive)
        .into_response();
    // Proxies pass pieces on as they come.
    response.headers_mut().insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    Ok(response)
}

/// A request, ready for the engine.
struct Prepared {
    prompt: Vec<TokenId>,
    options: GenerateOptions,
    frame: Frame,
    is_stream: bool,
}

fn prepare(server: &Server, body: &Bytes) -> Result<Prepared, ApiError> {
    let request = ChatRequest::parse(body)?;
    check_model(server, request.model.as_deref())?;
    server.check_length(&request.messages)?;
    let writer = server.assistant.writer();
    let LaidOut {
        tokens: prompt,
        segments,
    } = writer.lay_out(&request.messages, Some(&server.owner))?;
    let owner = match &request.user {
        Some(user) => format!("server: {user}"),
        None => "server".to_owned(),
    };
    let limit = request.max_tokens.or(server.limits.answer_tokens);
    let options = GenerateOptions {
        sampling: request.sampling,
        max_tokens: limit.unwrap_or(writer.info().context_tokens),
        stop: request.stop,
        // Who names no limit wants an answer, and not the same words until the window is full.
        stop_when_repeating: request.max_tokens.is_none(),
        scratch: false,
        owner,
        segments,
        ..GenerateOptions::default()
    };
    let options = writer.suited(options, prompt.len());
    Ok(Prepared {
        prompt,
        options,
        frame: Frame::new(&server.model, request.include_usage),
        is_stream: request.stream,
    })
}

/// Whether the model that a client names is the one that is here.
pub fn check_model(server: &Server, named: Option<&str>) -> Result<(), ApiError> {
    match named {
        None => Ok(()),
        Some(named) if named == server.model => Ok(()),
        Some(named) => {
            let text = format!(
                "the model \"{named}\" is not here; this server has \"{}\": name it, or leave model out",
                server.model
            );
            Err(ApiError::new(StatusCode::NOT_FOUND, text)
                .with_param("model")
                .with_code("model_not_found"))
        }
    }
}

/// A stream under way.
struct Telling {
    server: Arc<Server>,
    running: Running,
    frame: Frame,
    /// What is ready to go out.
    sent: VecDeque<Sent>,
    is_over: bool,
}

impl Telling {
    fn tell(&mut self, news: Result<News, ApiError>) {
        match news {
            Ok(News::Begun) => {}
            Ok(News::Text(text)) => self.sent.push_back(data(&self.frame.piece(&text))),
            Ok(News::End(answer)) => {
                self.sent.extend(self.frame.end(&answer).iter().map(data));
                self.sent.push_back(Sent::default().data("[DONE]"));
                self.is_over = true;
            }
            Err(error) => {
                self.sent.push_back(data(&error.json()));
                self.is_over = true;
            }
        }
    }

    fn into_stream(self) -> impl Stream<Item = Result<Sent, Infallible>> {
        stream::unfold(self, |mut telling| async move {
            while telling.sent.is_empty() {
                if telling.is_over {
                    return None;
                }
                let news = telling.running.next(&telling.server).await;
                telling.tell(news);
            }
            let next = telling.sent.pop_front()?;
            Some((Ok(next), telling))
        })
    }
}

fn data(value: &serde_json::Value) -> Sent {
    Sent::default().data(value.to_string())
}

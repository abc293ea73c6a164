//! `reprise serve`: the model for other programs, in OpenAI's words, on this machine only unless the person says
//! otherwise.
//!
//! [`gate`] keeps web pages out and asks for the key, [`answer`] turns a request into an answer, [`connection`] bounds
//! what a client may do to the server by being many or slow. The engine has its own thread; one more carries all the
//! talk.

mod answer;
mod body;
mod connection;
mod error;
mod gate;
mod metrics;
mod request;
mod response;
mod state;

use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::extract::{Path as InPath, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use clap::Args;
use reprise_engine::Reuse;
use reprise_library::assistant::Assistant;
use reprise_library::models::{Shelf, catalogue};
use reprise_library::system_words;
use serde_json::json;
use tokio::sync::watch;

use crate::arguments::{KeepArguments, ModelArguments, at_least, bytes};
use crate::failure::{Failure, Outcome};
use crate::interrupts;
use crate::output::{counted, note};
use crate::session::{program_owner, publish, warn};
use error::{ApiError, json_response};
use gate::Gate;
use state::{Limits, Server, phases};

/// The variable that may hold the key: a command line is seen by all who can list processes.
const KEY_VARIABLE: &str = "REPRISE_API_KEY";

#[derive(Debug, Args)]
#[command(after_help = "\
Clients take http://127.0.0.1:11711/v1 as their base URL. There are POST /v1/chat/completions,
GET /v1/models, /health, /metrics (for Prometheus) and /snapshot (the engine as JSON).
A client that names no temperature gets 0.3 and a repetition penalty of 1.05, as in `reprise chat`;
top_p is 0.95, top_k 40 and min_p 0.05 where it names none.
What clients send is kept on disk as program:serve, tokens and what was computed from them, so that a prompt
that begins like an earlier one is not read again, also after a restart; all clients share it. With --no-store
nothing is kept, and `reprise cache erase --owner program:serve` takes away what is.
No web page may use the server, unless --allow-origin says so. Ctrl-C ends it.

Examples:
  reprise serve
  reprise serve -m qwen3-4b --kv-budget 2G
  REPRISE_API_KEY=secret reprise serve --host 0.0.0.0")]
pub struct ServeArguments {
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    keep: KeepArguments,
    /// The address to listen at; others than this machine's own need a key
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", value_parser = address, help_heading = "Server")]
    host: IpAddr,
    /// The port to listen at; 0 takes a free one and says which
    #[arg(long, value_name = "N", default_value_t = 11_711, help_heading = "Server")]
    port: u16,
    /// The key that clients must send; better in $REPRISE_API_KEY, which no list of processes shows
    #[arg(long, value_name = "KEY", help_heading = "Server")]
    api_key: Option<String>,
    /// Another name that clients may call this machine by, such as box.lan (repeatable)
    #[arg(long, value_name = "NAME", value_parser = host_name, help_heading = "Server")]
    allow_host: Vec<String>,
    /// An origin whose web pages may use the server, such as http://localhost:3000 (repeatable)
    #[arg(long, value_name = "URL", value_parser = origin, help_heading = "Server")]
    allow_origin: Vec<String>,
    /// Requests that may wait while all lanes are taken; more are refused
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least::<0>, help_heading = "Server")]
    queue: usize,
    /// Largest body of a request
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = bytes, help_heading = "Server")]
    max_body: u64,
    /// Most tokens of an answer where the client names no limit [default: what the window holds]
    #[arg(long, value_name = "N", value_parser = at_least::<1>, help_heading = "Server")]
    max_tokens: Option<usize>,
    /// Only the address and warnings
    #[arg(short, long, help_heading = "Server")]
    quiet: bool,
}

fn address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => text
            .trim_matches(['[', ']'])
            .parse()
            .map_err(|_| "an IP address is needed, such as 127.0.0.1, ::1 or 0.0.0.0".to_owned()),
    }
}

fn host_name(text: &str) -> Result<String, String> {
    let name = text.trim().to_lowercase();
    let is_name = name.parse::<axum::http::uri::Authority>().is_ok() && !name.contains('@');
    if is_name {
        Ok(name)
    } else {
        Err("a name such as box.lan or box.lan:8080 is needed, without http://".into())
    }
}

fn origin(text: &str) -> Result<String, String> {
    let origin = text.trim().trim_end_matches('/').to_lowercase();
    let parsed = origin.parse::<axum::http::Uri>().ok();
    let is_origin = parsed.is_some_and(|uri| {
        uri.scheme_str().is_some() && uri.authority().is_some() && uri.path() == "/" && uri.query().is_none()
    });
    if is_origin && !origin.contains('*') {
        Ok(origin)
    } else {
        Err("an origin such as http://localhost:3000 is needed; '*' would let every web page in".into())
    }
}

pub fn run(arguments: &ServeArguments) -> Outcome {
    let key = key(arguments)?;
    if !arguments.host.is_loopback() && key.is_none() {
        return Err(Failure::Usage(format!(
            "other machines can reach {}: set a key that they must send ({KEY_VARIABLE} or --api-key), or listen at \
             127.0.0.1",
            arguments.host
        )));
    }
    // Before the model is loaded, which takes its time.
    let listener = listen(SocketAddr::new(arguments.host, arguments.port))?;
    let address = listener.local_addr()?;
    let path = Shelf::of_machine()?.resolve(arguments.model.model.as_deref())?;
    let assistant = load(&path, arguments)?;
    let _published = publish("serve", &assistant, arguments.quiet);
    let gate = Gate {
        key,
        hosts: arguments.allow_host.clone(),
        origins: arguments.allow_origin.clone(),
    };
    let limits = Limits {
        body_bytes: usize::try_from(arguments.max_body).unwrap_or(usize::MAX),
        waiting: arguments.queue,
        answer_tokens: arguments.max_tokens,
    };
    let made = path.metadata().and_then(|metadata| metadata.modified());
    let (stop, stopping) = watch::channel(false);
    let server = Server::new(
        assistant,
        model_name(arguments.model.model.as_deref(), &path)?,
        made.unwrap_or(SystemTime::UNIX_EPOCH),
        gate,
        limits,
        program_owner("serve")?,
        stopping.clone(),
    );
    interrupts::on_stop(move |_| {
        // Who asks twice does not wait for what runs.
        if stop.send_replace(true) {
            std::process::exit(interrupts::INTERRUPTED);
        }
    })?;
    announce(address, &server, arguments);

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(2)
        .build()
        .map_err(|error| Failure::message(format!("cannot start the server: {}", system_words(&error))))?;
    let router = router(Arc::new(server));
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        connection::serve(listener, router, stopping).await;
        io::Result::Ok(())
    })?;
    // A prompt that is just being turned into tokens is not waited for.
    runtime.shutdown_background();
    Ok(())
}

/// The key, which must be one that fits into a header.
fn key(arguments: &ServeArguments) -> Outcome<Option<String>> {
    let variable = std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty());
    let Some(key) = arguments.api_key.clone().or(variable) else {
        return Ok(None);
    };
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::Usage(
            "the key must be of letters, digits and signs without spaces (--api-key, REPRISE_API_KEY)".into(),
        ));
    }
    Ok(Some(key))
}

fn listen(address: SocketAddr) -> Outcome<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| {
        let what = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another program listens there; end it, or choose another --port".to_owned()
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine has no such address; choose another --host".to_owned()
            }
            io::ErrorKind::PermissionDenied => {
                "the system does not allow it; choose a --port above 1023".to_owned()
            }
            _ => system_words(&error),
        };
        Failure::message(format!("cannot listen at {address}: {what}"))
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn load(path: &Path, arguments: &ServeArguments) -> Outcome<Assistant> {
    let shown = !arguments.quiet && io::stderr().is_terminal();
    if shown {
        note(&format!(
            "loading {} ...",
            path.file_stem().unwrap_or_default().to_string_lossy()
        ));
    }
    // Programs expect the same answer to the same request, whatever others asked before.
    let options = arguments
        .keep
        .applied(arguments.model.load_options(true), Reuse::Prefix);
    let assistant = Assistant::load(path, &options)?;
    warn(&assistant);
    Ok(assistant)
}

/// What clients call the model: the name it was asked for by, or its file's.
fn model_name(asked: Option<&str>, path: &Path) -> Outcome<String> {
    let stem = || {
        path.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    Ok(match asked {
        Some(name) if Path::new(name).is_file() => stem(),
        Some(name) => name.to_owned(),
        None => catalogue::entries()?
            .into_iter()
            .find(|entry| entry.default)
            .map_or_else(stem, |entry| entry.name),
    })
}

/// Says where the server is: the address on standard output for scripts, the rest for the person.
fn announce(address: SocketAddr, server: &Server, arguments: &ServeArguments) {
    // A closed standard output leaves nobody to tell; the server is there all the same.
    let mut out = io::stdout();
    let _ = writeln!(out, "listening on http://{address}").and_then(|()| out.flush());
    if !arguments.host.is_loopback() {
        note("note: answers and the key travel unencrypted; use a network you trust, or a proxy with TLS");
    }
    if !arguments.quiet {
        let info = server.assistant.writer().info();
        note(&format!(
            "{} | {} | window {} | Ctrl-C ends the server, reprise top shows what it does",
            server.model,
            info.quantisation,
            counted(info.context_tokens, "token")
        ));
    }
}

fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(answer::completions))
        .route("/v1/models", get(models))
        .route("/v1/models/{*id}", get(model))
        .route(gate::OPEN_PATH, get(health))
        .route("/metrics", get(metrics_page))
        .route("/snapshot", get(snapshot))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(from_fn_with_state(Arc::clone(&server), gate::guard))
        .with_state(server)
}

async fn models(State(server): State<Arc<Server>>) -> Response {
    let list = [response::model(&server.model, server.created)];
    json_response(StatusCode::OK, &json!({ "object": "list", "data": list }))
}

async fn model(State(server): State<Arc<Server>>, InPath(id): InPath<String>) -> Result<Response, ApiError> {
    answer::check_model(&server, Some(&id))?;
    Ok(json_response(
        StatusCode::OK,
        &response::model(&server.model, server.created),
    ))
}

async fn health(State(server): State<Arc<Server>>) -> Response {
    let [queued, prefill, decode] = phases(&server.snapshot());
    let health =
        json!({ "status": "ok", "model": server.model, "lanes": prefill + decode, "queued": queued });
    json_response(StatusCode::OK, &health)
}

async fn metrics_page(State(server): State<Arc<Server>>) -> Response {
    let mut response = metrics::page(&server.model, &server.snapshot(), &server.meters).into_response();
    let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn snapshot(State(server): State<Arc<Server>>) -> Response {
    json_response(StatusCode::OK, &json!(server.snapshot()))
}

async fn unknown_path(request: Request) -> ApiError {
    let text = format!(
        "there is no {}; there are /v1/chat/completions, /v1/models, /health, /metrics and /snapshot",
        request.uri().path()
    );
    ApiError::new(StatusCode::NOT_FOUND, text).with_code("unknown_url")
}

async fn unknown_method(request: Request) -> ApiError {
    let path = request.uri().path();
    let wanted = if path == "/v1/chat/completions" {
        "POST"
    } else {
        "GET"
    };
    let text = format!("{} is not how {path} is asked; use {wanted}", request.method());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, text).with_code("method_not_allowed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_names_and_origins_are_checked_when_they_are_given() {
        assert_eq!(address("localhost"), Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(address("[::1]").is_ok() && address("0.0.0.0").is_ok() && address("box.lan").is_err());
        assert_eq!(host_name("Box.LAN:80"), Ok("box.lan:80".into()));
        assert!(host_name("http://box.lan").is_err() && host_name("").is_err() && host_name("a@b").is_err());
        assert_eq!(
            origin("http://Localhost:3000/"),
            Ok("http://localhost:3000".into())
        );
        for wrong in ["*", "http://*", "localhost:3000", "http://a/b", "null", ""] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_model_is_called_by_the_name_it_was_asked_for() {
        let path = Path::new("/models/Big.Q4.gguf");
        assert_eq!(model_name(Some("mine"), path).unwrap(), "mine");
        assert_eq!(model_name(None, path).unwrap(), "smollm2-135m");
        let file = tempfile::NamedTempFile::with_suffix(".gguf").unwrap();
        let given = file.path().to_str().unwrap();
        assert_eq!(
            model_name(Some(given), file.path()).unwrap(),
            file.path().file_stem().unwrap().to_str().unwrap()
        );
    }
}

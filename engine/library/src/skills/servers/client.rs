//! One server: its process, and the calls to it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reprise_engine::CancelToken;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, Tool};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, Command};
use tokio::runtime::Runtime;

use super::{Called, ServerConfig, ServerError, ServerLimits};

/// How often is looked whether the person stopped it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes of a server's complaints that are kept for telling why it died.
const COMPLAINT_BYTES: usize = 600;
/// What of this program's environment a server gets, as it needs it to find its files.
const INHERITED: [&str; 10] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "USER",
    "SYSTEMROOT",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
];

/// A server, which may or may not run at the moment.
pub(super) struct Client {
    config: ServerConfig,
    running: Option<Running>,
}

struct Running {
    service: RunningService<RoleClient, ()>,
    complaints: Arc<Mutex<VecDeque<u8>>>,
    /// The process and all that it started.
    #[cfg(unix)]
    group: Option<nix::unistd::Pid>,
}

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            // A group that ended by itself needs nothing.
            let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// How waiting ended.
enum Waited<T> {
    Done(T),
    TooLong,
    Cancelled,
}

async fn wait<T>(work: impl Future<Output = T>, limit: Duration, cancel: &CancelToken) -> Waited<T> {
    let begin = Instant::now();
    let mut work = pin!(work);
    loop {
        match tokio::time::timeout(LOOK_EVERY, work.as_mut()).await {
            Ok(done) => return Waited::Done(done),
            Err(_) if cancel.is_cancelled() => return Waited::Cancelled,
            Err(_) if begin.elapsed() > limit => return Waited::TooLong,
            Err(_) => {}
        }
    }
}

impl Client {
    pub(super) fn new(config: ServerConfig) -> Client {
        Client {
            config,
            running: None,
        }
    }

    pub(super) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// The tools it has; it is started where it does not run.
    pub(super) fn tools(
        &mut self,
        runtime: &Runtime,
        limits: ServerLimits,
        cancel: &CancelToken,
    ) -> Result<Vec<Tool>, ServerError> {
        let server = self.config.name.clone();
        let failed = |reason: String| ServerError::Start {
            server: server.clone(),
            reason,
        };
        let running = self.running(runtime, limits, cancel)?;
        let listing = wait(running.service.list_all_tools(), limits.start, cancel);
        match runtime.block_on(listing) {
            Waited::Done(Ok(tools)) => Ok(tools),
            Waited::Done(Err(error)) => {
                let reason = running.why(&error.to_string());
                Err(failed(reason))
            }
            Waited::TooLong => Err(failed("it does not say what tools it has".into())),
            Waited::Cancelled => Err(ServerError::Cancelled),
        }
    }

    pub(super) fn call(
        &mut self,
        runtime: &Runtime,
        tool: &str,
        arguments: Map<String, Value>,
        limits: ServerLimits,
        cancel: &CancelToken,
    ) -> Result<Called, ServerError> {
        let failed = |reason: String| ServerError::Call {
            tool: tool.to_owned(),
            reason,
        };
        let running = self.running(runtime, limits, cancel)?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let waited = runtime.block_on(wait(running.service.call_tool(params), limits.call, cancel));
        let (error, is_gone) = match waited {
            Waited::Done(Ok(result)) => return Ok(called(&result, limits.output_bytes)),
            Waited::Done(Err(ServiceError::McpError(error))) => (failed(error.message.into_owned()), false),
            Waited::Done(Err(error)) => (failed(running.why(&error.to_string())), true),
            // What is still on its way would be taken for an answer to the next call by a server that is in disorder.
            Waited::TooLong => (
                failed(format!("no answer within {:.0} s", limits.call.as_secs_f64())),
                true,
            ),
            Waited::Cancelled => (ServerError::Cancelled, true),
        };
        if is_gone {
            let _context = runtime.enter();
            self.running = None;
        }
        Err(error)
    }

    fn running(
        &mut self,
        runtime: &Runtime,
        limits: ServerLimits,
        cancel: &CancelToken,
    ) -> Result<&mut Running, ServerError> {
        let is_alive = self
            .running
            .as_ref()
            .is_some_and(|running| !running.service.is_closed());
        if !is_alive {
            let _context = runtime.enter();
            self.running = None;
            self.running = Some(start(&self.config, runtime, limits, cancel)?);
        }
        self.running.as_mut().ok_or(ServerError::Cancelled)
    }
}

impl Running {
    /// Why something failed: the server's own last words say more than the protocol.
    fn why(&self, error: &str) -> String {
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = complaints.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        match text.trim().lines().next_back() {
            Some(line) => format!("{error}; it said: {}", line.trim()),
            None => error.to_owned(),
        }
    }
}

fn start(
    config: &ServerConfig,
    runtime: &Runtime,
    limits: ServerLimits,
    cancel: &CancelToken,
) -> Result<Running, ServerError> {
    let failed = |reason: String| ServerError::Start {
        server: config.name.clone(),
        reason,
    };
    let mut command = Command::new(&config.command);
    command
        .args(&config.arguments)
        .env_clear()
        .envs(&config.environment);
    for name in INHERITED
        .iter()
        .filter(|name| !config.environment.contains_key(**name))
    {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    #[cfg(unix)]
    command.process_group(0);
    let spawned = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn();
    let (transport, stderr) = spawned.map_err(|error| {
        failed(format!(
            "{}: {}",
            config.command,
            crate::error::system_words(&error)
        ))
    })?;
    #[cfg(unix)]
    let group = transport
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .map(nix::unistd::Pid::from_raw);
    let complaints = Arc::new(Mutex::new(VecDeque::new()));
    if let Some(stderr) = stderr {
        runtime.spawn(listen(stderr, Arc::clone(&complaints)));
    }
    let last_words = || {
        // What it said may come a moment after it ended.
        std::thread::sleep(LOOK_EVERY);
        let complaints = complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = complaints.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        text.lines()
            .next_back()
            .map_or_else(String::new, |line| format!("; it said: {line}"))
    };
    let kill = || {
        #[cfg(unix)]
        if let Some(group) = group {
            let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        }
    };
    match runtime.block_on(wait(().serve(transport), limits.start, cancel)) {
        Waited::Done(Ok(service)) => Ok(Running {
            service,
            complaints,
            #[cfg(unix)]
            group,
        }),
        Waited::Done(Err(error)) => {
            let words = last_words();
            kill();
            let error = error.to_string();
            Err(failed(format!(
                "{}{words}",
                error.lines().next().unwrap_or_default()
            )))
        }
        Waited::TooLong => {
            kill();
            Err(failed(format!(
                "it said nothing within {:.0} s",
                limits.start.as_secs_f64()
            )))
        }
        Waited::Cancelled => {
            kill();
            Err(ServerError::Cancelled)
        }
    }
}

/// Keeps the end of what a server complains of.
async fn listen(mut stderr: ChildStderr, complaints: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count) = stderr.read(&mut buffer).await {
        if count == 0 {
            return;
        }
        let mut complaints = complaints.lock().unwrap_or_else(PoisonError::into_inner);
        complaints.extend(buffer.get(..count).unwrap_or_default());
        let surplus = complaints.len().saturating_sub(COMPLAINT_BYTES);
        complaints.drain(..surplus);
    }
}

/// The text of a result, up to a limit.
fn called(result: &CallToolResult, limit: usize) -> Called {
    let mut text = String::new();
    for block in &result.content {
        if !text.is_empty() {
            text.push('\n');
        }
        match block {
            ContentBlock::Text(block) => text.push_str(&block.text),
            ContentBlock::Image(_) => text.push_str("[an image, which is not shown]"),
            ContentBlock::Audio(_) => text.push_str("[a sound, which is not played]"),
            other => text.push_str(&serde_json::to_string(other).unwrap_or_default()),
        }
    }
    if text.is_empty()
        && let Some(value) = &result.structured_content
    {
        text = value.to_string();
    }
    text.retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    let kept = text.floor_char_boundary(limit);
    let left_out = text.len() - kept;
    text.truncate(kept);
    Called {
        text,
        left_out_bytes: left_out as u64,
        is_error: result.is_error.unwrap_or(false),
    }
}

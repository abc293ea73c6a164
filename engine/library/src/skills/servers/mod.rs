//! Servers of tools, by the Model Context Protocol: programs that a person named in a file, started when the person allows
//! it, and asked over their standard input and output. A server that is slow, talks too much or dies spoils the one call
//! it was asked for; the next call starts it again.

mod client;
pub mod config;

use std::path::PathBuf;
use std::time::Duration;

use reprise_engine::CancelToken;
use reprise_model::template::ToolSpec;
use serde_json::{Map, Value};

use super::consent::{Consent, may_start};
use super::error::SkillError;
use super::settings::Settings;
use crate::error::system_words;
use crate::folders::shown;
use client::Client;
pub use config::ServerConfig;

/// Between a server's name and its tool's.
const SEPARATOR: &str = "__";
/// Characters that the name of a tool may have.
const NAME_CHARS: usize = 64;
/// Characters of what a server says of a tool that a model is told.
const DESCRIPTION_CHARS: usize = 1024;
/// Tools that are taken from one server: a small model cannot choose among more.
const MOST_TOOLS: usize = 64;

/// How long servers may take, and how much they may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// To start and say what they can do.
    pub start: Duration,
    /// For one call.
    pub call: Duration,
    /// What of an answer is kept.
    pub output_bytes: usize,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            start: Duration::from_secs(30),
            call: Duration::from_secs(60),
            output_bytes: 16 * 1024,
        }
    }
}

/// What goes wrong with servers of tools.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The file cannot be read.
    #[error("cannot read {}: {}", shown(path), system_words(source))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not in the usual form.
    #[error(
        "the tool servers in {} cannot be understood ({reason}); mend the file",
        shown(path)
    )]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The settings.
    #[error(transparent)]
    Settings(#[from] SkillError),
    /// The person did not allow it.
    #[error("the tool server {server} was not started: it was not allowed")]
    NotAllowed {
        /// The server.
        server: String,
    },
    /// It does not start, or does not speak the protocol.
    #[error("the tool server {server} could not be started: {reason}")]
    Start {
        /// The server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// A call failed.
    #[error("{tool} failed: {reason}")]
    Call {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// The person stopped it.
    #[error("stopped")]
    Cancelled,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// The text.
    pub text: String,
    /// Bytes that are not in it.
    pub left_out_bytes: u64,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

/// A tool of a server.
struct ServerTool {
    spec: ToolSpec,
    server: usize,
    /// What the server calls it.
    name: String,
}

/// The servers that run, and their tools.
pub struct Servers {
    clients: Vec<Client>,
    tools: Vec<ServerTool>,
    limits: ServerLimits,
    /// Last: what the clients are made of ends before it.
    runtime: tokio::runtime::Runtime,
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        formatter
            .debug_struct("Servers")
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

impl Servers {
    /// Starts those of these servers that the person allows; why others are not there is told besides.
    ///
    /// # Errors
    /// When threads for them cannot be had.
    pub fn start(
        configs: Vec<ServerConfig>,
        settings: &Settings,
        consent: &mut dyn Consent,
        limits: ServerLimits,
        cancel: &CancelToken,
    ) -> Result<(Servers, Vec<ServerError>), ServerError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tool-servers")
            .enable_all()
            .build()
            .map_err(|error| ServerError::Start {
                server: "of any name".into(),
                reason: system_words(&error),
            })?;
        let mut servers = Servers {
            clients: Vec::new(),
            tools: Vec::new(),
            limits,
            runtime,
        };
        let mut failures = Vec::new();
        for config in configs {
            match may_start(settings, &config, consent, cancel) {
                Ok(true) => {}
                Ok(false) => {
                    failures.push(ServerError::NotAllowed { server: config.name });
                    continue;
                }
                Err(error) => {
                    failures.push(error.into());
                    continue;
                }
            }
            if let Err(error) = servers.add(config, cancel) {
                failures.push(error);
            }
        }
        Ok((servers, failures))
    }

    fn add(&mut self, config: ServerConfig, cancel: &CancelToken) -> Result<(), ServerError> {
        let mut client = Client::new(config);
        let tools = client.tools(&self.runtime, self.limits, cancel)?;
        let server = self.clients.len();
        for tool in tools.into_iter().take(MOST_TOOLS) {
            let name = format!("{}{SEPARATOR}{}", client.config().name, tool.name);
            let is_name = name.len() <= NAME_CHARS
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
            if !is_name {
                tracing::warn!(tool = %tool.name, server = %client.config().name, "a tool's name cannot be used");
                continue;
            }
            let description = tool.description.unwrap_or_default();
            self.tools.push(ServerTool {
                spec: ToolSpec {
                    name,
                    description: description.chars().take(DESCRIPTION_CHARS).collect(),
                    parameters: Value::Object(tool.input_schema.as_ref().clone()),
                },
                server,
                name: tool.name.into_owned(),
            });
        }
        self.clients.push(client);
        Ok(())
    }

    /// Their tools, as a model is told of them.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|tool| &tool.spec)
    }

    /// Whether one of them has a tool with this name.
    pub fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|known| known.spec.name == tool)
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// When there is no such tool, or the call fails, takes too long or is stopped.
    pub fn call(
        &mut self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancelToken,
    ) -> Result<Called, ServerError> {
        let known = self.tools.iter().find(|known| known.spec.name == tool);
        let client = known.and_then(|known| Some((self.clients.get_mut(known.server)?, known)));
        let Some((client, known)) = client else {
            return Err(ServerError::Call {
                tool: tool.to_owned(),
                reason: "there is no such tool".into(),
            });
        };
        client
            .call(&self.runtime, &known.name, arguments, self.limits, cancel)
            .map_err(|error| match error {
                ServerError::Call { reason, .. } => ServerError::Call {
                    tool: tool.to_owned(),
                    reason,
                },
                other => other,
            })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // What a client leaves behind is cleared away by the runtime's threads.
        let _context = self.runtime.enter();
        self.clients.clear();
    }
}

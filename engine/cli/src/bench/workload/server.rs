//! The other side: llama-server with the same model, asked as its clients ask it.
//!
//! It runs as a child on a free port of this machine, with one slot, its prompt cache as it is by default and the reuse
//! of moved pieces switched on. Its time to first token is what a client sees: from before the request is sent to the
//! first event of the answer. Every wait has a limit that grows with the model and with what is asked.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reprise_engine::TokenId;
use reprise_library::system_words;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use ureq::Agent;

use super::leftovers::Leftovers;
use super::system;
use crate::failure::{Failure, Outcome};

/// The least wait for anything, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds a token may take for each byte of the model: some twenty times what two slow cores need.
const TOKEN_SECONDS_PER_BYTE: f64 = 0.5e-9;
/// Bytes of a model that are loaded in a second at the least.
const LOADED_BYTES_PER_SECOND: f64 = 20e6;
/// Least tokens of a moved piece that the server takes from its cache.
const CACHE_REUSE_TOKENS: &str = "256";
/// How often it is asked whether it is ready.
const PAUSE: Duration = Duration::from_millis(50);

/// A running llama-server.
pub struct LlamaServer {
    client: Client,
    process: u32,
    binary: PathBuf,
    /// What it says on standard error.
    log: PathBuf,
    leftovers: Leftovers,
    _folder: TempDir,
}

/// An answer of it.
#[derive(Debug, Default, PartialEq)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// Until the first event.
    pub time_to_first_token: Duration,
    /// Tokens of the prompt that it did not compute, where it tells.
    pub reused_tokens: Option<usize>,
    /// Processor seconds it took.
    pub cpu_seconds: Option<f64>,
}

impl LlamaServer {
    /// Whether there is such a program at all; asked before anything that takes time.
    pub fn check(binary: &Path) -> Outcome {
        match fs::metadata(binary) {
            Ok(facts) if facts.is_file() => Ok(()),
            Ok(_) => Err(Failure::message(format!(
                "{}: this is no llama-server binary",
                binary.display()
            ))),
            Err(error) => Err(Failure::message(format!(
                "{}: {}; --against takes the path of a llama-server binary",
                binary.display(),
                system_words(&error)
            ))),
        }
    }

    /// Starts it and waits until it is ready.
    pub fn start(
        binary: &Path,
        model: &Path,
        context_tokens: usize,
        threads: usize,
        leftovers: &Leftovers,
    ) -> Outcome<LlamaServer> {
        let cannot = |error: std::io::Error| {
            Failure::message(format!(
                "{} cannot be run: {}",
                binary.display(),
                system_words(&error)
            ))
        };
        let folder = leftovers.folder()?;
        let log = folder.path().join("log");
        // Free now: it is the server's from here on, unless somebody is very quick.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(cannot)?
            .port();
        let mut command = Command::new(binary);
        command
            .arg("-m")
            .arg(model)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["-c", &context_tokens.to_string(), "-t", &threads.to_string()])
            .args(["-np", "1", "--cache-reuse", CACHE_REUSE_TOKENS, "--no-webui"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).map_err(cannot)?);
        // Settings of the person's own server are none of this one.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LLAMA_ARG_"))
        {
            command.env_remove(name);
        }
        let bytes = fs::metadata(model).map_or(0, |facts| facts.len());
        let server = LlamaServer {
            process: leftovers.spawn(&mut command).map_err(cannot)?,
            client: Client::new(port, bytes),
            binary: binary.to_owned(),
            log,
            leftovers: leftovers.clone(),
            _folder: folder,
        };
        server.wait(PATIENCE + Duration::from_secs_f64(bytes as f64 / LOADED_BYTES_PER_SECOND))?;
        Ok(server)
    }

    fn wait(&self, limit: Duration) -> Outcome {
        let started = Instant::now();
        loop {
            let is_ready = self.client.is_ready();
            // Asked in this order, so that it is this process that is ready.
            if self.leftovers.child_ended().is_some() {
                return Err(self.failure("did not start"));
            }
            if is_ready {
                return Ok(());
            }
            if started.elapsed() > limit {
                return Err(self.failure(&format!("was not ready after {} seconds", limit.as_secs())));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Asks it to go on from a prompt, always with the likeliest token.
    pub fn ask(&self, prompt: &[TokenId], most: usize) -> Outcome<Reply> {
        let before = system::cpu_seconds_of(self.process);
        let reply = self
            .client
            .ask(prompt, most)
            .map_err(|what| self.failure(&what))?;
        let after = system::cpu_seconds_of(self.process);
        Ok(Reply {
            cpu_seconds: after.zip(before).map(|(after, before)| after - before),
            ..reply
        })
    }

    /// What went wrong, with how the process ended and what it said last.
    fn failure(&self, what: &str) -> Failure {
        // A connection breaks a moment before its process has ended.
        std::thread::sleep(PAUSE);
        let ended = self
            .leftovers
            .child_ended()
            .map_or(String::new(), |status| format!(" and ended ({status})"));
        let log = fs::read(&self.log).unwrap_or_default();
        let said = match last_words(&String::from_utf8_lossy(&log)) {
            Some(words) => format!("; it said: {words}"),
            None => "; it said nothing".to_owned(),
        };
        Failure::message(format!("{} {what}{ended}{said}", self.binary.display()))
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        self.leftovers.end_child();
    }
}

/// The line of a log that tells most of a fault: the last that names an error, else the last.
fn last_words(log: &str) -> Option<&str> {
    let mut lines = log.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next();
    lines
        .find(|line| {
            ["error", "fail", "invalid"]
                .iter()
                .any(|word| line.contains(word))
        })
        .or(last)
}

/// Speaks to a server on a port of this machine.
struct Client {
    agent: Agent,
    address: String,
    model_bytes: u64,
}

/// An event of a streamed answer.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    content: String,
    #[serde(default)]
    stop: bool,
    timings: Option<Timings>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Timings {
    cache_n: Option<usize>,
}

impl Client {
    fn new(port: u16, model_bytes: u64) -> Client {
        let config = Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .timeout_connect(Some(PATIENCE));
        Client {
            agent: config.build().into(),
            address: format!("http://127.0.0.1:{port}"),
            model_bytes,
        }
    }

    fn is_ready(&self) -> bool {
        let request = self
            .agent
            .get(format!("{}/health", self.address))
            .config()
            .timeout_global(Some(Duration::from_secs(5)))
            .build();
        request.call().is_ok_and(|response| response.status() == 200)
    }

    /// How long an answer may take in all.
    fn patience(&self, tokens: usize) -> Duration {
        PATIENCE + Duration::from_secs_f64(tokens as f64 * self.model_bytes as f64 * TOKEN_SECONDS_PER_BYTE)
    }

    /// Says what the server did wrong as the end of a sentence that begins with its name.
    fn ask(&self, prompt: &[TokenId], most: usize) -> Result<Reply, String> {
        let body = json!({
            "prompt": prompt,
            "n_predict": most,
            "temperature": 0,
            "cache_prompt": true,
            "stream": true,
        })
        .to_string();
        // A token that is written may take as long as several that are read.
        let limit = self.patience(prompt.len() + 8 * most);
        let broke = |error: String| match error.contains("timeout") {
            true => format!("gave no answer within {} seconds", limit.as_secs()),
            false => format!("broke off an answer ({error})"),
        };
        let request = self
            .agent
            .post(format!("{}/completion", self.address))
            .config()
            .timeout_global(Some(limit))
            .build()
            .header("content-type", "application/json");
        let started = Instant::now();
        let mut response = request.send(&body).map_err(|error| broke(error.to_string()))?;
        if response.status() != 200 {
            let status = response.status();
            let mut said = String::new();
            // What it says is cut where it says too much.
            let _ = response
                .body_mut()
                .as_reader()
                .take(2_000)
                .read_to_string(&mut said);
            return Err(format!("refused a request ({status}): {}", message(said.trim())));
        }
        let mut reply = Reply::default();
        let mut is_first = true;
        for line in BufReader::new(response.body_mut().as_reader()).lines() {
            let line = line.map_err(|error| broke(error.to_string()))?;
            let Some(data) = line
                .strip_prefix("data:")
                .or_else(|| line.strip_prefix("error:"))
                .map(str::trim)
                .filter(|data| *data != "[DONE]")
            else {
                continue;
            };
            let arrived = started.elapsed();
            let event: Event = serde_json::from_str(data)
                .map_err(|error| format!("did not answer as llama-server does: {error}"))?;
            if event.error.is_some() || line.starts_with("error:") {
                return Err(format!("failed: {}", message(data)));
            }
            if std::mem::take(&mut is_first) {
                reply.time_to_first_token = arrived;
            }
            reply.text += &event.content;
            if event.stop {
                reply.reused_tokens = event.timings.and_then(|timings| timings.cache_n);
                return Ok(reply);
            }
        }
        Err(if is_first {
            "gave no tokens".into()
        } else {
            "broke off an answer".into()
        })
    }
}

/// The message in an error of the server, or all of it.
fn message(text: &str) -> String {
    let parsed = serde_json::from_str::<Value>(text).unwrap_or_default();
    let found = parsed["error"]["message"].as_str().or(parsed["message"].as_str());
    found.unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread::JoinHandle;

    use super::*;

    /// A server that gives one answer, and then the request it got.
    fn answering(answer: &'static str) -> (Client, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(listener.local_addr().unwrap().port(), 0);
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                request += &line;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            request + &String::from_utf8(body).unwrap()
        });
        (client, server)
    }

    const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

    #[test]
    fn an_answer_is_put_together_from_its_events() {
        let (client, server) = answering(concat!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            ": ping\n\ndata: {\"content\":\"Good\",\"stop\":false}\n\ndata: {\"content\":\" morning\",\"stop\":false}\n\n",
            "data: {\"content\":\"\",\"stop\":true,\"timings\":{\"cache_n\":7,\"prompt_n\":2}}\n\n",
        ));
        let reply = client.ask(&[1, 2, 3], 5).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.reused_tokens),
            ("Good morning", Some(7))
        );
        assert!(!reply.time_to_first_token.is_zero());
        let request = server.join().unwrap();
        assert!(request.starts_with("POST /completion"), "{request}");
        let body: Value = serde_json::from_str(&request[request.find('{').unwrap()..]).unwrap();
        assert_eq!(
            (&body["prompt"], &body["n_predict"], &body["temperature"]),
            (&json!([1, 2, 3]), &json!(5), &json!(0))
        );
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        let fault = |answer: &'static str| answering(answer).0.ask(&[1], 1).unwrap_err();
        assert_eq!(fault(STREAM), "gave no tokens");
        let cut =
            fault("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: {\"content\":\"a\",\"stop\":false}\n\n");
        assert_eq!(cut, "broke off an answer");
        let refused = fault(
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 47\r\n\r\n{\"error\":{\"message\":\"the prompt is too long\"}}  ",
        );
        assert!(
            refused.contains("400") && refused.ends_with("the prompt is too long"),
            "{refused}"
        );
        let failed = fault(
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: {\"error\":{\"message\":\"no slot\"}}\n\n",
        );
        assert_eq!(failed, "failed: no slot");
        let other = fault("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: 7\n\n");
        assert!(
            other.starts_with("did not answer as llama-server does"),
            "{other}"
        );
        assert!(fault("").starts_with("broke off an answer ("));
        assert!(!Client::new(1, 0).is_ready());
    }

    #[test]
    fn waits_grow_with_the_model_and_with_what_is_asked() {
        let client = Client::new(1, 1_000_000_000);
        assert_eq!(client.patience(0), PATIENCE);
        assert!(client.patience(3_000) > Duration::from_secs(1_500));
    }

    #[test]
    fn the_line_that_names_an_error_is_told() {
        assert_eq!(
            last_words("a\nerror: no such file\nbye\n\n"),
            Some("error: no such file")
        );
        assert_eq!(last_words("a\nb\n"), Some("b"));
        assert_eq!(last_words(" \n"), None);
    }
}

//! A `reprise serve` for one test, and HTTP by hand, so that a test can also send what no library would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// No step of a test takes that long, on a busy machine either.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A model with random weights: it loads at once, and what it says makes no sense.
pub fn tiny() -> PathBuf {
    super::repository().join("tests/golden/tiny/tiny-llama3-q4_k.gguf")
}

pub struct Server {
    pub child: Child,
    pub port: u16,
    pub home: tempfile::TempDir,
}

impl Server {
    /// With the tiny model.
    pub fn tiny(arguments: &[&str]) -> Server {
        let model = tiny();
        Server::start(&[&["-m", model.to_str().unwrap()], arguments].concat())
    }

    /// With the default model, on one thread.
    pub fn real(arguments: &[&str]) -> Server {
        Server::start(&[&["--threads", "1"], arguments].concat())
    }

    pub fn start(arguments: &[&str]) -> Server {
        let home = super::folder();
        let mut command = super::reprise(home.path());
        command.args(["serve", "--port", "0"]).args(arguments);
        Server::spawn(command, home)
    }

    pub fn spawn(mut command: Command, home: tempfile::TempDir) -> Server {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line
            .trim_end()
            .strip_prefix("listening on http://")
            .and_then(|address| {
                let (_, port) = address.rsplit_once(':')?;
                port.parse().ok()
            });
        let Some(port) = port else {
            let _ = child.kill();
            panic!("{line:?} {:?}", child.wait_with_output());
        };
        Server { child, port, home }
    }

    /// A request's head, ready for more headers and an empty line.
    pub fn head(&self, method: &str, path: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n",
            self.port
        )
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes as they are, and reads what comes until the connection ends.
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Reply {
        let mut stream = self.connect();
        // A server that refuses early does not read everything.
        let _ = stream.write_all(bytes.as_ref());
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        Reply::parse(&got)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send(self.head("GET", path) + "\r\n")
    }

    pub fn post_text(&self, body: &str, headers: &str) -> Reply {
        self.send(self.post(body, headers))
    }

    fn post(&self, body: &str, headers: &str) -> String {
        let head = self.head("POST", "/v1/chat/completions");
        let length = body.len();
        format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
    }

    pub fn ask(&self, request: &Value) -> Reply {
        self.post_text(&request.to_string(), "")
    }

    /// Starts a request and reads nothing of its answer.
    pub fn begin(&self, request: &Value) -> TcpStream {
        let mut stream = self.connect();
        stream
            .write_all(self.post(&request.to_string(), "").as_bytes())
            .unwrap();
        stream
    }

    /// Starts a stream and waits for the first piece of its answer.
    pub fn stream(&self, request: &Value) -> BufReader<TcpStream> {
        let mut reader = BufReader::new(self.begin(request));
        let mut line = String::new();
        while !line.contains("\"delta\":{\"content\"") {
            line.clear();
            assert!(
                reader.read_line(&mut line).unwrap() > 0,
                "the stream ended before its first piece"
            );
        }
        reader
    }

    pub fn health(&self) -> Value {
        self.get("/health").json()
    }

    /// Waits until /health says so.
    #[track_caller]
    pub fn wait_for(&self, lanes: u64, queued: u64) {
        let begin = Instant::now();
        loop {
            let health = self.health();
            if health["lanes"] == lanes && health["queued"] == queued {
                return;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "{health} instead of {lanes} lanes and {queued} waiting"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &command])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for its end, and gives what it said to the person.
    pub fn end(mut self) -> (ExitStatus, String) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(!said.contains("panicked"), "{said}");
        (status, said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(mut err) = self.child.stderr.take() {
            let mut said = String::new();
            let _ = err.read_to_string(&mut said);
            if !std::thread::panicking() {
                assert!(!said.contains("panicked"), "{said}");
            } else {
                eprintln!("the server said: {said}");
            }
        }
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Reply {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = match head.to_lowercase().contains("transfer-encoding: chunked") {
            true => dechunked(rest),
            false => rest.to_owned(),
        };
        Reply {
            status: status.unwrap_or_else(|| panic!("no HTTP: {text:?}")),
            head: head.to_owned(),
            body,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What the chunks of a stream carry.
    pub fn events(&self) -> Vec<String> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(str::to_owned).collect()
    }

    /// Asserts an error in OpenAI's shape, with this status and code, and these words in its message.
    #[track_caller]
    pub fn assert_error(&self, status: u16, code: Option<&str>, words: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        let error = &self.json()["error"];
        assert!(
            error["type"].is_string() && error.get("param").is_some(),
            "{self:?}"
        );
        assert_eq!(error["code"], json!(code), "{self:?}");
        for word in words {
            assert!(
                error["message"].as_str().unwrap().contains(word),
                "no {word:?} in {self:?}"
            );
        }
    }
}

fn dechunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else {
            break;
        };
        if size == 0 || after.len() < size + 2 {
            break;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    body
}

/// A question.
pub fn question(text: &str, more: Value) -> Value {
    let mut request = json!({ "messages": [{ "role": "user", "content": text }] });
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    request
}

//! Fetching model files from a server on this machine: whole, cut off, stopped, changed in between, wrong.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use reprise_engine::CancelToken;
use reprise_library::models::fetch::{FetchError, fetch};

/// How the server answers one request after the other; the last way stays.
#[derive(Clone, Copy)]
enum Way {
    /// All that was asked for.
    Whole,
    /// So many bytes of it, and then the connection ends.
    Cut(usize),
    /// So many bytes of it, and then nothing more, on a connection that stays.
    Silent(usize),
    /// This status, and nothing.
    Status(u16),
}

struct Server {
    address: String,
    /// The first byte that each request asked for.
    asked: Arc<Mutex<Vec<usize>>>,
}

impl Server {
    fn start(bytes: Vec<u8>, tag: &'static str, ways: Vec<Way>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/model.gguf", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let way = ways[number.min(ways.len() - 1)];
                let start = answer(stream.unwrap(), &bytes, tag, way);
                seen.lock().unwrap().push(start);
            }
        });
        Server { address, asked }
    }

    fn asked(&self) -> Vec<usize> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers a request as the web's servers do: a part only of the same state of the file.
fn answer(mut stream: TcpStream, bytes: &[u8], tag: &str, way: Way) -> usize {
    let mut start = 0;
    let mut is_same = true;
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let lower = line.to_lowercase();
        if let Some(range) = lower.strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().unwrap();
        } else if lower.starts_with("if-range: ") {
            is_same = line["if-range: ".len()..] == *tag;
        }
    }
    if !is_same {
        start = 0;
    }
    let rest = &bytes[start.min(bytes.len())..];
    let (head, body) = match way {
        Way::Status(status) => (format!("HTTP/1.1 {status} No\r\n"), &rest[..0]),
        Way::Whole | Way::Cut(_) | Way::Silent(_) => {
            let body = match way {
                Way::Cut(count) | Way::Silent(count) => &rest[..count.min(rest.len())],
                _ => rest,
            };
            let status = match start {
                0 => "200 OK".to_owned(),
                _ => format!(
                    "206 Partial Content\r\nContent-Range: bytes {start}-{}/{}",
                    bytes.len() - 1,
                    bytes.len()
                ),
            };
            (
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", rest.len()),
                body,
            )
        }
    };
    let length = if matches!(way, Way::Status(_)) {
        "Content-Length: 0\r\n"
    } else {
        ""
    };
    let head = format!("{head}{length}ETag: {tag}\r\nConnection: close\r\n\r\n");
    // Who stopped does not listen any more.
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body));
    if matches!(way, Way::Silent(_)) {
        std::mem::forget(stream); // nobody closes it
    }
    start
}

fn model() -> Vec<u8> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tiny/tiny-llama3-q4_k.gguf");
    std::fs::read(golden).unwrap()
}

fn get(server: &Server, to: &Path, sha256: Option<&str>) -> Result<(), FetchError> {
    fetch(
        &server.address,
        to,
        sha256,
        &CancelToken::default(),
        &mut |_, _| (),
    )
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("models/model.gguf");
    (folder, to)
}

#[test]
fn a_file_that_breaks_off_is_gone_on_with_where_it_broke_off() {
    let bytes = model();
    let (folder, to) = place();
    let server = Server::start(
        bytes.clone(),
        "\"one\"",
        vec![Way::Cut(1_000), Way::Status(503), Way::Cut(500), Way::Whole],
    );
    let mut heard = Vec::new();
    fetch(
        &server.address,
        &to,
        None,
        &CancelToken::default(),
        &mut |done, total| {
            heard.push((done, total));
        },
    )
    .unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), bytes);
    assert_eq!(server.asked(), [0, 1_000, 1_000, 1_500]);
    let whole = bytes.len() as u64;
    assert_eq!(heard.last(), Some(&(whole, Some(whole))));
    let left: Vec<_> = std::fs::read_dir(folder.path().join("models")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
}

#[test]
fn a_stop_keeps_what_is_here_and_another_time_goes_on() {
    let bytes = model();
    let (_folder, to) = place();
    let server = Server::start(bytes.clone(), "\"one\"", vec![Way::Whole]);
    let cancel = CancelToken::default();
    let stop = cancel.clone();
    let error = fetch(&server.address, &to, None, &cancel, &mut |done, _| {
        if done > 0 {
            stop.cancel();
        }
    })
    .unwrap_err();
    assert!(matches!(error, FetchError::Stopped), "{error}");
    assert!(!to.exists());
    get(&server, &to, None).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), bytes);
    assert!(server.asked()[1] > 0);
}

#[test]
fn a_stop_does_not_wait_for_a_server_that_has_fallen_silent() {
    let bytes = model();
    let (_folder, to) = place();
    let server = Server::start(bytes.clone(), "\"one\"", vec![Way::Silent(1_000), Way::Whole]);
    let cancel = CancelToken::default();
    let stop = cancel.clone();
    let mut heard = 0;
    let error = fetch(&server.address, &to, None, &cancel, &mut |done, _| {
        heard += usize::from(done == 1_000);
        // The person stops it only after it has stood still for a while.
        if heard == 3 {
            stop.cancel();
        }
    })
    .unwrap_err();
    assert!(matches!(error, FetchError::Stopped), "{error}");
    get(&server, &to, None).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), bytes);
    assert_eq!(server.asked(), [0, 1_000]);
}

#[test]
fn another_state_of_the_file_is_fetched_from_its_beginning() {
    let bytes = model();
    let (_folder, to) = place();
    let old = Server::start(
        vec![7; bytes.len()],
        "\"old\"",
        vec![Way::Cut(2_000), Way::Status(404)],
    );
    assert!(matches!(
        get(&old, &to, None),
        Err(FetchError::Refused { status: 404, .. })
    ));
    let new = Server::start(bytes.clone(), "\"new\"", vec![Way::Whole]);
    get(&new, &to, None).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), bytes);
}

#[test]
fn what_is_not_the_file_that_was_meant_goes_away_with_the_reason() {
    let (folder, to) = place();
    let server = Server::start(model(), "\"one\"", vec![Way::Whole]);
    let error = get(&server, &to, Some(&"0".repeat(64))).unwrap_err();
    assert!(matches!(error, FetchError::Checksum { .. }), "{error}");
    let page = Server::start(
        b"<html>please sign in</html>".to_vec(),
        "\"one\"",
        vec![Way::Whole],
    );
    let error = get(&page, &to, None).unwrap_err();
    assert!(matches!(error, FetchError::NoModel(_)), "{error}");
    assert_eq!(
        std::fs::read_dir(folder.path().join("models")).unwrap().count(),
        0
    );
}

#[test]
fn nobody_listening_is_told_with_what_to_do() {
    let (_folder, to) = place();
    let server = Server::start(Vec::new(), "\"one\"", vec![Way::Status(401)]);
    let error = get(&server, &to, None).unwrap_err().to_string();
    assert!(error.contains("401") && error.contains("by hand"), "{error}");
}

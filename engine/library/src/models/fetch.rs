//! Fetching a model file from a web server: it goes on where it was cut off, now or at another time, and the file gets its
//! name only when all of it is here and right.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use reprise_engine::CancelToken;
use reprise_model::gguf::{Gguf, GgufError};
use sha2::{Digest, Sha256};
use ureq::http::header::{CONTENT_RANGE, ETAG, IF_RANGE, RANGE};
use ureq::http::{Response, StatusCode};

use crate::error::system_words;
use crate::folders::shown;

/// Bytes that are read, and counted, at once.
const BLOCK_BYTES: usize = 256 << 10;
/// Times in a row that nothing comes before it is given up.
const MOST_TRIES: u32 = 5;
/// The first wait before another try; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Blocks that may have come and not been written yet.
const BLOCKS_AHEAD: usize = 4;
/// How often a wait looks for a stop.
const GLANCE: Duration = Duration::from_millis(50);
const LONGEST_CONNECT: Duration = Duration::from_secs(20);
/// A server that is silent for so long has gone.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// Why a file is not here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The person stopped it.
    #[error("stopped; what is here stays, and the next time goes on there")]
    Stopped,
    /// The server cannot be reached, or breaks off again and again.
    #[error("{url} cannot be reached ({why}); check the connection and try again: it goes on where it was")]
    Server {
        /// What was asked for.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// The server does not give it.
    #[error(
        "{url} is not given out (the server says {status}); get the file by hand from its page, and add it"
    )]
    Refused {
        /// What was asked for.
        url: String,
        /// What the server says.
        status: u16,
    },
    /// What came is not what was meant.
    #[error(
        "what came from {url} is not the file that was meant: its checksum is {is} and not {wanted}; it was removed; try again, or get it by hand"
    )]
    Checksum {
        /// What was asked for.
        url: String,
        /// Of what came.
        is: String,
        /// Of what was meant.
        wanted: String,
    },
    /// What came is no model.
    #[error("what came is no model, and was removed: {0}")]
    NoModel(#[from] GgufError),
    /// The file cannot be written.
    #[error("cannot write {}: {}", shown(path), system_words(source))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Fetches a model file. `on_progress` hears of the bytes that are here and, once known, of all.
///
/// # Errors
/// See [`FetchError`]. What is here of it stays in a file beside, except when that turned out wrong.
pub fn fetch(
    url: &str,
    to: &Path,
    sha256: Option<&str>,
    cancel: &CancelToken,
    on_progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<(), FetchError> {
    let part = Part::of(to);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|source| part.cannot(source))?;
    }
    let agent = ureq::Agent::config_builder()
        .timeout_connect(Some(LONGEST_CONNECT))
        .timeout_recv_response(Some(LONGEST_SILENCE))
        .timeout_recv_body(None)
        .http_status_as_error(false)
        .build()
        .new_agent();
    let mut tries = 0;
    loop {
        let before = part.bytes();
        match part.go_on(&agent, url, cancel, on_progress) {
            Ok(()) => break,
            Err(Trouble::Final(error)) => return Err(error),
            Err(Trouble::Passing(why)) => {
                if part.bytes() > before {
                    tries = 0; // it is slow going, but it goes
                }
                tries += 1;
                if tries >= MOST_TRIES {
                    return Err(FetchError::Server {
                        url: url.to_owned(),
                        why,
                    });
                }
                wait(FIRST_WAIT * 2_u32.pow(tries - 1), cancel)?;
            }
        }
    }
    part.check(url, sha256)?;
    part.finish(to)
}

fn wait(time: Duration, cancel: &CancelToken) -> Result<(), FetchError> {
    let mut left = time;
    while !left.is_zero() {
        if cancel.is_cancelled() {
            return Err(FetchError::Stopped);
        }
        let step = left.min(GLANCE);
        thread::sleep(step);
        left -= step;
    }
    Ok(())
}

enum Trouble {
    /// Another try may help.
    Passing(String),
    Final(FetchError),
}

impl From<FetchError> for Trouble {
    fn from(error: FetchError) -> Trouble {
        Trouble::Final(error)
    }
}

/// What is here of a file that is being fetched.
struct Part {
    path: PathBuf,
    /// Holds what the server calls this state of the file, so that two states are never joined.
    tag: PathBuf,
}

impl Part {
    fn of(to: &Path) -> Part {
        let beside = |ending: &str| {
            let mut name: OsString = to.file_name().unwrap_or_default().to_owned();
            name.push(ending);
            to.with_file_name(name)
        };
        Part {
            path: beside(".part"),
            tag: beside(".part.tag"),
        }
    }

    fn bytes(&self) -> u64 {
        self.path.metadata().map_or(0, |file| file.len())
    }

    fn cannot(&self, source: io::Error) -> FetchError {
        FetchError::File {
            path: self.path.clone(),
            source,
        }
    }

    /// Asks for the rest and takes it.
    fn go_on(
        &self,
        agent: &ureq::Agent,
        url: &str,
        cancel: &CancelToken,
        on_progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<(), Trouble> {
        let passing = |error: &dyn std::fmt::Display| Trouble::Passing(error.to_string());
        let tag = fs::read_to_string(&self.tag).ok().filter(|tag| !tag.is_empty());
        // Without the server's word for what is here nothing tells that the rest belongs to it.
        let have = if tag.is_some() { self.bytes() } else { 0 };
        let mut request = agent.get(url);
        if let (Some(tag), true) = (&tag, have > 0) {
            request = request
                .header(RANGE, format!("bytes={have}-"))
                .header(IF_RANGE, tag);
        }
        let response = request.call().map_err(|error| passing(&error))?;
        let (start, total) = match response.status() {
            StatusCode::OK => (0, body_bytes(&response)),
            StatusCode::PARTIAL_CONTENT => match range(&response) {
                Some((start, total)) if start == have => (start, total),
                _ => {
                    return Err(Trouble::Passing(
                        "the server gave another part than was asked for".into(),
                    ));
                }
            },
            // All of it is here already.
            StatusCode::RANGE_NOT_SATISFIABLE => return Ok(()),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(Trouble::Passing(format!("the server says {status}")));
            }
            status => {
                return Err(Trouble::Final(FetchError::Refused {
                    url: url.to_owned(),
                    status: status.as_u16(),
                }));
            }
        };
        let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        // A weak tag does not promise the same bytes.
        let tag = tag.filter(|tag| !tag.starts_with("W/")).unwrap_or_default();
        fs::write(&self.tag, tag).map_err(|error| self.cannot(error))?;
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.path)
            .map_err(|error| self.cannot(error))?;
        file.set_len(start).map_err(|error| self.cannot(error))?;
        file.seek(SeekFrom::Start(start))
            .map_err(|error| self.cannot(error))?;
        let blocks = blocks_of(response.into_body().into_reader()).map_err(|error| self.cannot(error))?;
        let mut done = start;
        let mut heard = Instant::now();
        loop {
            on_progress(done, total);
            if cancel.is_cancelled() {
                return Err(FetchError::Stopped.into());
            }
            let block = match blocks.recv_timeout(GLANCE) {
                Ok(block) => block.map_err(|error| passing(&error))?,
                Err(RecvTimeoutError::Timeout) if heard.elapsed() < LONGEST_SILENCE => continue,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Trouble::Passing("the server has fallen silent".into()));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            file.write_all(&block).map_err(|error| self.cannot(error))?;
            done += block.len() as u64;
            heard = Instant::now();
        }
        file.sync_all().map_err(|error| self.cannot(error))?;
        match total {
            Some(total) if done < total => Err(Trouble::Passing(format!(
                "the server broke off after {done} of {total} bytes"
            ))),
            _ => Ok(()),
        }
    }

    /// Holds what came against its checksum, and whether it is a model; what is not goes away.
    fn check(&self, url: &str, sha256: Option<&str>) -> Result<(), FetchError> {
        let checked = self.try_check(url, sha256);
        if let Err(FetchError::Checksum { .. } | FetchError::NoModel(_)) = &checked {
            for path in [&self.path, &self.tag] {
                if let Err(error) = fs::remove_file(path) {
                    tracing::warn!(%error, path = %path.display(), "a wrong download is still there");
                }
            }
        }
        checked
    }

    fn try_check(&self, url: &str, sha256: Option<&str>) -> Result<(), FetchError> {
        if let Some(wanted) = sha256 {
            let is = sum(&self.path).map_err(|error| self.cannot(error))?;
            if is != wanted {
                return Err(FetchError::Checksum {
                    url: url.to_owned(),
                    is,
                    wanted: wanted.to_owned(),
                });
            }
        }
        Gguf::open(&self.path)?;
        Ok(())
    }

    fn finish(&self, to: &Path) -> Result<(), FetchError> {
        fs::rename(&self.path, to).map_err(|error| self.cannot(error))?;
        if let Err(error) = fs::remove_file(&self.tag) {
            tracing::debug!(%error, "a tag of a download stays");
        }
        Ok(())
    }
}

/// What comes, block by block, read by a thread of its own: a read that waits for a silent server cannot be stopped, and
/// who listens can. The thread ends with the body, with the first error, or when nobody listens any more.
fn blocks_of(mut body: impl Read + Send + 'static) -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (sender, blocks) = mpsc::sync_channel(BLOCKS_AHEAD);
    thread::Builder::new().name("fetch body".into()).spawn(move || {
        loop {
            let mut block = vec![0; BLOCK_BYTES];
            let read = match body.read(&mut block) {
                Ok(0) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read,
            };
            let is_last = read.is_err();
            let sent = sender.send(read.map(|count| {
                block.truncate(count);
                block
            }));
            if sent.is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(blocks)
}

/// A file's checksum in hexadecimal digits.
fn sum(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        match file.read(&mut block)? {
            0 => break,
            count => hasher.update(&block[..count]),
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn body_bytes<B>(response: &Response<B>) -> Option<u64> {
    header(response, "content-length")?.parse().ok()
}

/// Start and whole of `bytes 100-199/200`.
fn range<B>(response: &Response<B>) -> Option<(u64, Option<u64>)> {
    let text = header(response, CONTENT_RANGE.as_str())?.strip_prefix("bytes ")?;
    let (part, total) = text.split_once('/')?;
    let (start, _) = part.split_once('-')?;
    Some((start.parse().ok()?, total.parse().ok()))
}

fn header<'a, B>(response: &'a Response<B>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

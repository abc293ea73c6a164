//! Which servers of tools there are: the usual file with `mcpServers`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::ServerError;

/// Name of the file in the data folder.
pub const FILE: &str = "mcp.json";
/// Characters that a server's name may have: it is a part of its tools' names.
const NAME_CHARS: usize = 32;

/// A server and how it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment, besides a few that every program needs.
    pub environment: BTreeMap<String, String>,
}

impl ServerConfig {
    /// The hash of what is started: command, arguments, environment.
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        let mut add = |text: &str| {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        add(&self.command);
        add(&self.arguments.len().to_string());
        self.arguments.iter().for_each(|argument| add(argument));
        for (name, value) in &self.environment {
            add(name);
            add(value);
        }
        hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "mcpServers", default)]
    servers: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

/// The servers in the data folder's file; none where there is no file. What cannot be used is told besides.
///
/// # Errors
/// When the file cannot be read, or is not in the usual form.
pub fn read(data: &Path) -> Result<(Vec<ServerConfig>, Vec<String>), ServerError> {
    let path = data.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
        Err(source) => return Err(ServerError::File { path, source }),
    };
    parse(&text, path)
}

fn parse(text: &str, path: PathBuf) -> Result<(Vec<ServerConfig>, Vec<String>), ServerError> {
    let file: File = serde_json::from_str(text).map_err(|error| ServerError::Config {
        path,
        reason: error.to_string(),
    })?;
    let (mut servers, mut notes) = (Vec::new(), Vec::new());
    for (name, entry) in file.servers {
        let is_name = (1..=NAME_CHARS).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !name.contains("__");
        match entry.command {
            _ if entry.disabled => {}
            _ if !is_name => notes.push(format!(
                "the tool server {name:?} is left out: a name has 1 to {NAME_CHARS} letters, digits, - and _"
            )),
            None => notes.push(format!(
                "the tool server {name} is left out: it has no command, and servers behind an address are not used"
            )),
            Some(command) => servers.push(ServerConfig {
                name,
                command,
                arguments: entry.args,
                environment: entry.env,
            }),
        }
    }
    Ok((servers, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_form_is_read_and_what_cannot_be_used_is_told() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "server", "/tmp"], "env": {"A": "b"}},
            "off": {"command": "x", "disabled": true},
            "far": {"url": "https://example.org"},
            "a b": {"command": "x"}}, "other": 1}"#;
        let (servers, notes) = parse(text, PathBuf::new()).unwrap();
        assert_eq!(servers.len(), 1);
        assert_eq!(
            (servers[0].name.as_str(), servers[0].arguments.len()),
            ("files", 3)
        );
        assert_eq!(notes.len(), 2, "{notes:?}");
        let error = parse("{", "mcp.json".into()).unwrap_err().to_string();
        assert!(error.contains("mcp.json"), "{error}");
    }

    #[test]
    fn every_part_of_a_command_counts_for_its_hash() {
        let server = |arguments: &[&str], environment: &[(&str, &str)]| {
            let config = ServerConfig {
                name: "x".into(),
                command: "run".into(),
                arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
                environment: environment
                    .iter()
                    .map(|&(key, value)| (key.into(), value.into()))
                    .collect(),
            };
            config.hash()
        };
        let hashes = [
            server(&[], &[]),
            server(&["a", "b"], &[]),
            server(&["ab"], &[]),
            server(&["a"], &[("b", "")]),
            server(&["a"], &[("", "b")]),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..index].contains(hash), "{index}");
        }
    }
}

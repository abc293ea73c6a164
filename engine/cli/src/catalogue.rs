//! The models known by name: those of `models/catalogue.toml`, compiled in, and those the person added.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Outcome, system_words};
use crate::folders;

/// The catalogue's text.
pub const TEXT: &str = include_str!("../../../models/catalogue.toml");

/// A model of the catalogue.
#[derive(Debug, Clone, Deserialize)]
pub struct Entry {
    pub name: String,
    #[serde(default)]
    pub default: bool,
    pub file: String,
    #[serde(flatten)]
    pub source: Source,
    pub page: String,
    pub sha256: Option<String>,
    pub size_bytes: u64,
    pub licence: String,
    pub context: usize,
    pub tried: bool,
    pub note: String,
}

/// How a model's file is had.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum Source {
    /// Out of a Python package.
    Package { package: String, member: String },
    /// From its page, by hand.
    Page,
}

#[derive(Deserialize)]
struct Catalogue {
    model: Vec<Entry>,
}

/// A file the person added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    pub name: String,
    pub path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct AddedModels {
    #[serde(default)]
    model: Vec<Added>,
}

/// All models of the catalogue, the default one first.
pub fn entries() -> Outcome<Vec<Entry>> {
    let catalogue: Catalogue = toml::from_str(TEXT)
        .map_err(|error| Failure::message(format!("the built-in model catalogue is broken: {error}")))?;
    Ok(catalogue.model)
}

/// The models the person added.
pub fn added() -> Outcome<Vec<Added>> {
    let file = list_file()?;
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot("read", &file, &error)),
    };
    let list: AddedModels = toml::from_str(&text).map_err(|error| {
        let why = error.message();
        Failure::message(format!(
            "{}: {why}; mend the file, or delete it and add your models again",
            folders::shown(&file)
        ))
    })?;
    Ok(list.model)
}

/// Replaces the list of added models, whole or not at all.
pub fn store_added(models: Vec<Added>) -> Outcome {
    let file = list_file()?;
    let folder = folders::data()?;
    let text = toml::to_string(&AddedModels { model: models })?;
    fs::create_dir_all(&folder).map_err(|error| cannot("make the folder", &folder, &error))?;
    let write = || -> io::Result<()> {
        let mut partial = tempfile::NamedTempFile::new_in(&folder)?;
        partial.write_all(text.as_bytes())?;
        partial.as_file().sync_all()?;
        partial.persist(&file)?;
        Ok(())
    };
    write().map_err(|error| cannot("write", &file, &error))
}

fn list_file() -> Outcome<PathBuf> {
    Ok(folders::data()?.join("models.toml"))
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::message(format!(
        "cannot {act} {}: {}",
        folders::shown(path),
        system_words(error)
    ))
}

/// The file for `-m`: a name of the catalogue, a name the person gave, or a path; without any, the default model.
pub fn resolve(wanted: Option<&str>) -> Outcome<PathBuf> {
    let entries = entries()?;
    let by_name = match wanted {
        Some(name) => entries.iter().find(|entry| entry.name == name),
        None => entries.iter().find(|entry| entry.default),
    };
    if let Some(entry) = by_name {
        let path = folders::models()?.join(&entry.file);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(missing(entry)?)
        };
    }
    let wanted =
        wanted.ok_or_else(|| Failure::message("the catalogue names no default model; choose one with -m"))?;
    let path = PathBuf::from(wanted);
    if let Some(model) = added()?.into_iter().find(|model| model.name == wanted) {
        if model.path.is_file() {
            return Ok(model.path);
        }
        let path = folders::shown(&model.path);
        return Err(Failure::message(format!(
            "the file of {wanted} is gone from {path}; put it back, or forget it with: reprise models remove {wanted}"
        )));
    }
    if path.is_dir() {
        return Err(Failure::message(format!(
            "{wanted} is a folder; name the GGUF file in it"
        )));
    }
    if !path.exists() {
        return Err(Failure::message(format!(
            "no model is named {wanted} and there is no such file; see the names with: reprise models list"
        )));
    }
    Ok(path)
}

/// The error for a model of the catalogue that is not here, with the way to get it.
pub fn missing(entry: &Entry) -> Outcome<Failure> {
    let Entry { name, file, page, .. } = entry;
    if let Source::Package { .. } = entry.source {
        return Ok(Failure::message(format!(
            "the model {name} is not here yet; get it with: reprise models fetch {name}"
        )));
    }
    let folder = folders::shown(&folders::models()?);
    let sum = entry
        .sha256
        .as_ref()
        .map(|sum| format!(" (sha256 {sum})"))
        .unwrap_or_default();
    Ok(Failure::message(format!(
        "the model {name} is not here; download {file} from {page} into {folder}{sum}, \
         or use your copy with: reprise models add FILE"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_whole() {
        let entries = entries().unwrap();
        assert_eq!(entries.iter().filter(|entry| entry.default).count(), 1);
        assert!(entries[0].default, "scripts take the first entry");
        for (index, entry) in entries.iter().enumerate() {
            assert!(
                entries[..index]
                    .iter()
                    .all(|other| other.name != entry.name && other.file != entry.file)
            );
            assert!(
                entry.page.starts_with("https://") && entry.file.ends_with(".gguf") && entry.size_bytes > 0
            );
            assert!(
                entry.sha256.as_ref().is_none_or(|sum| sum.len() == 64),
                "{}",
                entry.name
            );
            assert!(
                !entry.default || (entry.sha256.is_some() && matches!(entry.source, Source::Package { .. }))
            );
        }
    }
}

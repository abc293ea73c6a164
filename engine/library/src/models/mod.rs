//! Model files: those known by name, and those the person added.

pub mod catalogue;
pub mod fetch;
pub mod fit;
pub mod found;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use reprise_model::gguf::{Gguf, GgufError};
use serde::{Deserialize, Serialize};

use crate::error::system_words;
use crate::files::write_whole;
use crate::folders::{self, NoHome};
use catalogue::{Entry, Source};

/// Why a model cannot be named, found or remembered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    /// No folder is known.
    #[error(transparent)]
    NoHome(#[from] NoHome),
    /// The catalogue inside the program is broken.
    #[error("the built-in model catalogue is broken: {0}")]
    Catalogue(String),
    /// The person's list cannot be understood.
    #[error(
        "{}: {why}; mend the file, or delete it and add your models again",
        folders::shown(path)
    )]
    List {
        /// The list.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file or folder cannot be used.
    #[error("cannot {act} {}: {}", folders::shown(path), system_words(source))]
    File {
        /// What was tried.
        act: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A model of the catalogue whose file is not on this machine.
    #[error("{}", not_here(entry, folder))]
    NotHere {
        /// The model.
        entry: Box<Entry>,
        /// Where its file belongs.
        folder: PathBuf,
    },
    /// A model that was added, and whose file went away.
    #[error(
        "the file of {name} is gone from {}; put it back, or forget it with: reprise models remove {name}",
        folders::shown(path)
    )]
    Gone {
        /// Its name.
        name: String,
        /// Where it was.
        path: PathBuf,
    },
    /// A folder where a file is needed.
    #[error("{0} is a folder; name the GGUF file in it")]
    IsFolder(String),
    /// Neither a name nor a file.
    #[error("no model is named {0} and there is no such file; see the names with: reprise models list")]
    Unknown(String),
    /// Not a name among those added.
    #[error("no added model is named {0}; see the names with: reprise models list")]
    NotAdded(String),
    /// A text that cannot name a model.
    #[error("\"{0}\" cannot be a name: use letters, digits, dots and dashes (--name NAME)")]
    BadName(String),
    /// Another model has the name.
    #[error("the name {0} is taken; choose another with --name")]
    Taken(String),
    /// The file is not a model that can be read.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The file is a model of a kind that cannot be run.
    #[error("{}: {why}", folders::shown(path))]
    Kind {
        /// The file.
        path: PathBuf,
        /// Why it cannot.
        why: String,
    },
}

fn not_here(entry: &Entry, folder: &Path) -> String {
    let Entry { name, file, page, .. } = entry;
    if let Source::Package { .. } = entry.source {
        return format!("the model {name} is not here yet; get it with: reprise models fetch {name}");
    }
    let folder = folders::shown(folder);
    let sum = entry
        .sha256
        .as_ref()
        .map(|sum| format!(" (sha256 {sum})"))
        .unwrap_or_default();
    format!(
        "the model {name} is not here; download {file} from {page} into {folder}{sum}, or use your copy with: reprise \
         models add FILE"
    )
}

/// A file the person added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// What a person types.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct AddedModels {
    #[serde(default)]
    model: Vec<Added>,
}

/// Where model files are looked for.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// The first one is where fetched models go.
    folders: Vec<PathBuf>,
    data: PathBuf,
}

impl Shelf {
    /// The machine's own folders.
    ///
    /// # Errors
    /// When no home directory is known.
    pub fn of_machine() -> Result<Shelf, ModelsError> {
        Ok(Shelf {
            folders: vec![folders::models()?],
            data: folders::data()?,
        })
    }

    /// Looks into this folder too, after the others: models that came with the program.
    pub fn with_folder(mut self, folder: PathBuf) -> Shelf {
        self.folders.push(folder);
        self
    }

    /// The file of a catalogue's model, when it is here.
    pub fn file_of(&self, entry: &Entry) -> Option<PathBuf> {
        self.path_of(&entry.file)
    }

    /// The file of this name, when it is here.
    pub(crate) fn path_of(&self, file: &str) -> Option<PathBuf> {
        self.folders
            .iter()
            .map(|folder| folder.join(file))
            .find(|path| path.is_file())
    }

    /// Where a fetched file goes.
    pub fn place_of(&self, entry: &Entry) -> PathBuf {
        let folder = self.folders.first().cloned().unwrap_or_default();
        folder.join(&entry.file)
    }

    /// The error for a model of the catalogue that is not here, with the way to get it.
    pub fn missing(&self, entry: &Entry) -> ModelsError {
        ModelsError::NotHere {
            entry: Box::new(entry.clone()),
            folder: self.folders.first().cloned().unwrap_or_default(),
        }
    }

    /// The models the person added.
    ///
    /// # Errors
    /// When their list cannot be read.
    pub fn added(&self) -> Result<Vec<Added>, ModelsError> {
        let path = self.list_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(ModelsError::File {
                    act: "read",
                    path,
                    source,
                });
            }
        };
        let list: AddedModels = toml::from_str(&text).map_err(|error| ModelsError::List {
            path,
            why: error.message().to_string(),
        })?;
        Ok(list.model)
    }

    /// The file for a wanted model: a name of the catalogue, a name the person gave, or a path; without any, the
    /// default model.
    ///
    /// # Errors
    /// When there is none, with the way to get it.
    pub fn resolve(&self, wanted: Option<&str>) -> Result<PathBuf, ModelsError> {
        let entries = catalogue::entries()?;
        let by_name = match wanted {
            Some(name) => entries.iter().find(|entry| entry.name == name),
            None => entries.iter().find(|entry| entry.default),
        };
        if let Some(entry) = by_name {
            return self.file_of(entry).ok_or_else(|| self.missing(entry));
        }
        let wanted = wanted.ok_or_else(|| ModelsError::Catalogue("it names no default model".into()))?;
        if let Some(model) = self.added()?.into_iter().find(|model| model.name == wanted) {
            let Added { name, path } = model;
            return if path.is_file() {
                Ok(path)
            } else {
                Err(ModelsError::Gone { name, path })
            };
        }
        let path = PathBuf::from(wanted);
        if path.is_dir() {
            return Err(ModelsError::IsFolder(wanted.to_string()));
        }
        if !path.exists() {
            return Err(ModelsError::Unknown(wanted.to_string()));
        }
        Ok(path)
    }

    /// What a person calls a wanted model (see [`Shelf::resolve`]), where the catalogue or the person named it.
    pub fn title(&self, wanted: Option<&str>) -> Option<String> {
        let is_wanted = |entry: &Entry| wanted.map_or(entry.default, |name| entry.name == name);
        let named = catalogue::entries().ok()?.into_iter().find(is_wanted);
        let added = || {
            self.added()
                .ok()?
                .into_iter()
                .find(|model| Some(model.name.as_str()) == wanted)
        };
        named
            .map(|entry| entry.title)
            .or_else(|| added().map(|model| model.name))
    }

    /// Remembers a file under a name (its own stem, when none is given) and gives the name.
    ///
    /// # Errors
    /// When the file is not a model, or the name cannot be had.
    pub fn add(&self, file: &Path, name: Option<String>) -> Result<String, ModelsError> {
        // Opening it checks the whole file, so that a broken one is told now and not in the middle of a chat.
        Gguf::open(file)?;
        let path = file.canonicalize().map_err(|source| ModelsError::File {
            act: "find",
            path: file.to_owned(),
            source,
        })?;
        let stem = || {
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .to_lowercase()
        };
        let name = name.unwrap_or_else(stem);
        if name.is_empty() || name.contains(['/', '\\']) || name.chars().any(char::is_whitespace) {
            return Err(ModelsError::BadName(name));
        }
        if name == catalogue::OCR || catalogue::entries()?.iter().any(|entry| entry.name == name) {
            return Err(ModelsError::Taken(name));
        }
        let mut added = self.added()?;
        match added.iter().find(|model| model.name == name) {
            Some(model) if model.path == path => {}
            Some(_) => return Err(ModelsError::Taken(name)),
            None => {
                added.push(Added {
                    name: name.clone(),
                    path,
                });
                self.store_added(added)?;
            }
        }
        Ok(name)
    }

    /// Forgets a model that was added; its file stays.
    ///
    /// # Errors
    /// When no added model has the name, or the list cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), ModelsError> {
        let mut added = self.added()?;
        let before = added.len();
        added.retain(|model| model.name != name);
        if added.len() == before {
            return Err(ModelsError::NotAdded(name.to_string()));
        }
        self.store_added(added)
    }

    /// Replaces the list of added models, whole or not at all.
    fn store_added(&self, models: Vec<Added>) -> Result<(), ModelsError> {
        let cannot = |act, path: &Path, source| ModelsError::File {
            act,
            path: path.to_owned(),
            source,
        };
        let file = self.list_file();
        let text = toml::to_string(&AddedModels { model: models }).map_err(|error| ModelsError::List {
            path: file.clone(),
            why: error.to_string(),
        })?;
        fs::create_dir_all(&self.data).map_err(|error| cannot("make the folder", &self.data, error))?;
        write_whole(&file, text.as_bytes()).map_err(|error| cannot("write", &file, error))
    }

    fn list_file(&self) -> PathBuf {
        self.data.join("models.toml")
    }
}

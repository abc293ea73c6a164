//! Model files that other programs have on this machine: the folders of Hugging Face's libraries, LM Studio and Ollama.
//! They are used where they lie; nothing is copied or changed.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// How deep files are looked for in a folder of another program.
const DEEPEST: usize = 6;
/// Files looked at in one folder tree at most.
const MOST_FILES: usize = 20_000;
/// A manifest larger than this is none.
const MANIFEST_BYTES: u64 = 1 << 20;
/// How Ollama marks the weights among the layers of a model.
const OLLAMA_WEIGHTS: &str = "application/vnd.ollama.image.model";

/// A program that keeps models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// Hugging Face's libraries.
    HuggingFace,
    /// LM Studio.
    LmStudio,
    /// Ollama.
    Ollama,
}

impl Keeper {
    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Keeper::HuggingFace => "Hugging Face",
            Keeper::LmStudio => "LM Studio",
            Keeper::Ollama => "Ollama",
        }
    }
}

/// A model file of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it is called there.
    pub name: String,
    /// The file, where it really lies.
    pub path: PathBuf,
    /// Whose it is.
    pub keeper: Keeper,
}

/// Where to look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(Vec<(Keeper, PathBuf)>);

impl Places {
    /// The folders these programs use on this machine, for this person.
    pub fn of_machine() -> Places {
        let set = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf());
        let at_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let hub = set("HF_HUB_CACHE")
            .or_else(|| set("HF_HOME").map(|folder| folder.join("hub")))
            .or_else(|| at_home(".cache/huggingface/hub"));
        let ollama = set("OLLAMA_MODELS").or_else(|| at_home(".ollama/models"));
        let places = [
            (Keeper::HuggingFace, hub),
            (Keeper::LmStudio, at_home(".lmstudio/models")),
            (Keeper::LmStudio, at_home(".cache/lm-studio/models")),
            (Keeper::Ollama, ollama),
            // Where Ollama's own installer for Linux lets its service keep them.
            (
                Keeper::Ollama,
                Some(PathBuf::from("/usr/share/ollama/.ollama/models")),
            ),
        ];
        Places(
            places
                .into_iter()
                .filter_map(|(keeper, path)| Some((keeper, path?)))
                .collect(),
        )
    }

    /// These folders.
    pub fn new(places: Vec<(Keeper, PathBuf)>) -> Places {
        Places(places)
    }

    /// The model files in them, each once, by name. What cannot be read is left out: it is another program's.
    pub fn look(&self) -> Vec<Found> {
        let mut seen = HashSet::new();
        let mut found: Vec<Found> = self
            .0
            .iter()
            .flat_map(|(keeper, folder)| match keeper {
                Keeper::Ollama => of_ollama(folder),
                _ => of_folder(*keeper, folder),
            })
            .filter(|one| seen.insert(one.path.clone()))
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }
}

/// GGUF files below a folder. A model's first part stands for all of them; projectors of pictures are no models.
fn of_folder(keeper: Keeper, folder: &Path) -> Vec<Found> {
    files_below(folder)
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let stem = name
                .strip_suffix(".gguf")
                .or_else(|| name.strip_suffix(".GGUF"))?;
            let is_model = !stem.to_lowercase().starts_with("mmproj") && !is_later_part(stem);
            is_model.then(|| stem.to_owned()).map(|name| (name, path.clone()))
        })
        .filter_map(|(name, path)| {
            // The hub's snapshots are links into a folder of blobs: what the link is called is what a person knows.
            path.canonicalize().ok().map(|path| Found { name, path, keeper })
        })
        .collect()
}

/// Whether a file is the second or a later part of a model that was split: `name-00002-of-00005`.
fn is_later_part(stem: &str) -> bool {
    let Some((rest, _)) = stem.rsplit_once("-of-") else {
        return false;
    };
    let part = rest.rsplit('-').next().unwrap_or_default();
    part.len() == 5 && part.parse::<u32>().is_ok_and(|part| part > 1)
}

#[derive(Deserialize)]
struct Manifest {
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

/// Ollama keeps weights under the hash of their bytes, and a manifest for each name: `manifests/HOST/WHO/MODEL/TAG`.
fn of_ollama(folder: &Path) -> Vec<Found> {
    files_below(&folder.join("manifests"))
        .into_iter()
        .filter_map(|manifest| {
            if manifest.metadata().ok()?.len() > MANIFEST_BYTES {
                return None;
            }
            let text = fs::read_to_string(&manifest).ok()?;
            let Manifest { layers } = serde_json::from_str(&text).ok()?;
            let weights = layers
                .into_iter()
                .find(|layer| layer.media_type == OLLAMA_WEIGHTS)?;
            let hash = weights.digest.strip_prefix("sha256:")?;
            if hash.is_empty() || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None; // a manifest must not name a file elsewhere
            }
            let path = folder.join("blobs").join(format!("sha256-{hash}"));
            let tag = manifest.file_name()?.to_str()?;
            let model = manifest.parent()?.file_name()?.to_str()?;
            Some(Found {
                name: format!("{model}:{tag}"),
                path: path.canonicalize().ok()?,
                keeper: Keeper::Ollama,
            })
        })
        .collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .max_depth(Some(DEEPEST))
        .build()
        .filter_map(Result::ok)
        .take(MOST_FILES)
        // A link is what the hub has for a file.
        .filter(|entry| entry.path().is_file())
        .map(ignore::DirEntry::into_path)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn models_of_other_programs_are_found_by_the_names_they_have_there() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        write(at("lm/pub/model/Small-Q4_K_M.gguf"), "x");
        write(at("lm/pub/model/mmproj-Small.gguf"), "x");
        write(at("lm/pub/big/Big-00001-of-00002.gguf"), "x");
        write(at("lm/pub/big/Big-00002-of-00002.gguf"), "x");
        write(at("lm/pub/model/README.md"), "x");
        write(at("ollama/blobs/sha256-abc123"), "x");
        write(
            at("ollama/manifests/host/library/gemma3/1b"),
            r#"{"layers": [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:ff"},
                {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:abc123"}]}"#,
        );
        write(
            at("ollama/manifests/host/library/evil/latest"),
            r#"{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../x"}]}"#,
        );
        write(at("ollama/manifests/host/library/broken/latest"), "{");
        let places = Places::new(vec![
            (Keeper::LmStudio, at("lm")),
            (Keeper::Ollama, at("ollama")),
            (Keeper::HuggingFace, at("nowhere")),
        ]);
        let names: Vec<(String, Keeper)> = places
            .look()
            .into_iter()
            .map(|one| (one.name, one.keeper))
            .collect();
        let expected = [
            ("Big-00001-of-00002".to_owned(), Keeper::LmStudio),
            ("Small-Q4_K_M".to_owned(), Keeper::LmStudio),
            ("gemma3:1b".to_owned(), Keeper::Ollama),
        ];
        assert_eq!(names, expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_of_the_hub_is_followed_to_its_file_once() {
        let home = tempfile::tempdir().unwrap();
        let blob = home.path().join("models--a--b/blobs/123");
        write(blob.clone(), "x");
        for revision in ["one", "two"] {
            let link = home
                .path()
                .join(format!("models--a--b/snapshots/{revision}/m.gguf"));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&blob, link).unwrap();
        }
        let found = Places::new(vec![(Keeper::HuggingFace, home.path().to_owned())]).look();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "m");
        assert_eq!(found[0].path, blob.canonicalize().unwrap());
    }
}

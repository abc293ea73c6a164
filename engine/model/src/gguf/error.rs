//! Everything that can be wrong with a model file, in words for the person who has to do something about it.

use std::path::PathBuf;

use reprise_kernels::quant::QuantType;

/// Why a model file cannot be used. Byte offsets count from the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are what the message prints
pub enum GgufError {
    /// There is no such file.
    #[error("{path}: there is no such file; check the path, or download the model", path = path.display())]
    NotFound { path: PathBuf },
    /// A folder was given.
    #[error("{path}: this is a folder; give the .gguf file inside it", path = path.display())]
    Directory { path: PathBuf },
    /// A pipe, a device or the like was given.
    #[error("{path}: this is not an ordinary file, and a model must be one", path = path.display())]
    NotAFile { path: PathBuf },
    /// The file has no bytes.
    #[error("{path}: the file is empty; its download did not begin, so download it again", path = path.display())]
    Empty { path: PathBuf },
    /// The system would not open or map it.
    #[error("{path}: cannot be read: {source}", path = path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The first four bytes are not `GGUF`.
    #[error(
        "{path}: this is not a GGUF file (it begins with {begins}); choose a model in the GGUF format",
        path = path.display()
    )]
    NotGguf { path: PathBuf, begins: String },
    /// Written for a big-endian machine.
    #[error("{path}: this GGUF file is big-endian; download the ordinary (little-endian) one", path = path.display())]
    BigEndian { path: PathBuf },
    /// A version of the format this crate does not read.
    #[error(
        "{path}: GGUF version {version} is not supported (2 and 3 are); download a newer conversion of this model",
        path = path.display()
    )]
    Version { path: PathBuf, version: u32 },
    /// One part of a model that was split into several files.
    #[error(
        "{path}: this is one of {parts} parts of a split model; join them into one file (gguf-split --merge) and open that",
        path = path.display()
    )]
    Split { path: PathBuf, parts: u64 },
    /// The file ends too early.
    #[error(
        "{path}: the file is cut short: {what} at byte {at} needs {needed} more bytes and {left} are left; \
         download it again",
        path = path.display()
    )]
    Truncated {
        path: PathBuf,
        what: String,
        at: u64,
        needed: u64,
        left: u64,
    },
    /// The header or the metadata says something impossible.
    #[error("{path}: the file is damaged at byte {at}: {problem}; download it again", path = path.display())]
    Damaged { path: PathBuf, at: u64, problem: String },
    /// The file's description of one tensor is impossible.
    #[error("{path}: tensor \"{tensor}\" is damaged: {problem}; download the file again", path = path.display())]
    DamagedTensor {
        path: PathBuf,
        tensor: String,
        problem: String,
    },
    /// A tensor type the kernels do not know.
    #[error(
        "{path}: tensor \"{tensor}\" has the type number {type_id}, which is not supported; choose a file in one of {known}",
        path = path.display(), known = known_types()
    )]
    UnknownType {
        path: PathBuf,
        tensor: String,
        type_id: u32,
    },
    /// Metadata the model needs is not there.
    #[error(
        "{path}: the file lacks \"{key}\", which this kind of model needs; download another conversion of it",
        path = path.display()
    )]
    MissingKey { path: PathBuf, key: String },
    /// Metadata of an unexpected kind.
    #[error(
        "{path}: \"{key}\" should be {expected} and is {found}; download another conversion of this model",
        path = path.display()
    )]
    WrongKind {
        path: PathBuf,
        key: String,
        expected: &'static str,
        found: String,
    },
    /// A tensor the model needs is not there.
    #[error(
        "{path}: the file lacks the tensor \"{tensor}\", which this kind of model needs; download another conversion of it",
        path = path.display()
    )]
    MissingTensor { path: PathBuf, tensor: String },
}

fn known_types() -> String {
    QuantType::ALL.map(QuantType::name).join(", ")
}

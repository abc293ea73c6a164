//! GGUF model files (versions 2 and 3): opened by memory mapping and checked from end to end before anything reads
//! them. After [`Gguf::open`] every tensor's bytes lie inside the file, have the length its shape and type ask for, and
//! belong to no other tensor. The architecture descriptions, the tokenizer and the engine's weight loader read from it.

mod error;
mod mmap;
mod parse;
mod value;

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use error::GgufError;
use mmap::Storage;
pub use parse::TensorInfo;
use reprise_kernels::quant::QuantType;
pub use value::{Array, FromValue, Strings, Value};

use std::collections::BTreeMap;

/// An open, validated model file.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    version: u32,
    alignment: u64,
    metadata: BTreeMap<String, Value>,
    tensors: Vec<TensorInfo>,
    by_name: HashMap<String, usize>,
    storage: Storage,
}

/// One tensor: what it is called, its shape, and its bytes in the file.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a> {
    /// The name in the file, for example `blk.0.attn_q.weight`.
    pub name: &'a str,
    /// Dimensions as the file gives them: the row length first. One to four, none of them zero.
    pub shape: &'a [u64],
    /// The element type.
    pub ty: QuantType,
    /// The raw bytes: whole rows, each of whole blocks.
    pub data: &'a [u8],
}

impl Tensor<'_> {
    /// Values in one row.
    pub fn row_len(&self) -> usize {
        // Validated: the product of all dimensions fits a usize.
        self.shape.first().map_or(0, |&len| len as usize)
    }

    /// Number of rows, over all outer dimensions.
    pub fn rows(&self) -> usize {
        self.shape.iter().skip(1).product::<u64>() as usize
    }
}

impl Gguf {
    /// Maps the file and validates all of it except the numbers inside the tensors.
    ///
    /// # Errors
    /// Every message names the file, what is wrong and where, and what to do about it.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        Self::build(path.to_path_buf(), Storage::map(path)?)
    }

    /// The same for a file already in memory; errors call it `(memory)`.
    ///
    /// # Errors
    /// As for [`Gguf::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Gguf, GgufError> {
        Self::build(PathBuf::from("(memory)"), Storage::Owned(bytes))
    }

    fn build(path: PathBuf, storage: Storage) -> Result<Gguf, GgufError> {
        let parsed = parse::parse(&path, storage.bytes())?;
        Ok(Gguf {
            path,
            version: parsed.version,
            alignment: parsed.alignment,
            metadata: parsed.metadata,
            tensors: parsed.tensors,
            by_name: parsed.by_name,
            storage,
        })
    }

    /// Where the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format's version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Every tensor begins at a multiple of this many bytes within the data section.
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.storage.bytes().len() as u64
    }

    /// All metadata, sorted by key.
    pub fn metadata(&self) -> &BTreeMap<String, Value> {
        &self.metadata
    }

    /// Reads `key` as a `T`, or `None` when the file does not have it.
    ///
    /// # Errors
    /// When the value is there but is not a `T` (names the key, what it holds and what was expected).
    pub fn optional<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, GgufError> {
        let Some(value) = self.metadata.get(key) else {
            return Ok(None);
        };
        match T::from_value(value) {
            Some(read) => Ok(Some(read)),
            None => Err(GgufError::WrongKind {
                path: self.path.clone(),
                key: key.to_owned(),
                expected: T::EXPECTED,
                found: value.describe(),
            }),
        }
    }

    /// Reads `key` as a `T`.
    ///
    /// # Errors
    /// When the key is missing or its value is not a `T`.
    pub fn required<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, GgufError> {
        self.optional(key)?.ok_or_else(|| GgufError::MissingKey {
            path: self.path.clone(),
            key: key.to_owned(),
        })
    }

    /// A required non-negative integer of any width that fits 32 bits.
    ///
    /// # Errors
    /// As for [`Gguf::required`]; so for all the getters below.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        self.required(key)
    }

    /// A required non-negative integer of any width.
    #[allow(clippy::missing_errors_doc)]
    pub fn u64(&self, key: &str) -> Result<u64, GgufError> {
        self.required(key)
    }

    /// A required floating-point number.
    #[allow(clippy::missing_errors_doc)]
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        self.required(key)
    }

    /// A required truth value.
    #[allow(clippy::missing_errors_doc)]
    pub fn bool(&self, key: &str) -> Result<bool, GgufError> {
        self.required(key)
    }

    /// A required string.
    #[allow(clippy::missing_errors_doc)]
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        self.required(key)
    }

    /// A required array of floating-point numbers.
    #[allow(clippy::missing_errors_doc)]
    pub fn f32_array(&self, key: &str) -> Result<Vec<f32>, GgufError> {
        self.required(key)
    }

    /// A required array of integers that fit `i32`.
    #[allow(clippy::missing_errors_doc)]
    pub fn i32_array(&self, key: &str) -> Result<Vec<i32>, GgufError> {
        self.required(key)
    }

    /// A required array of strings.
    #[allow(clippy::missing_errors_doc)]
    pub fn str_array(&self, key: &str) -> Result<&Strings, GgufError> {
        self.required(key)
    }

    /// All tensors, in the order of the file's tensor table.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.tensors.iter().map(|info| self.view(info))
    }

    /// The tensor called `name`, if the file has it.
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let info = self.tensors.get(*self.by_name.get(name)?)?;
        Some(self.view(info))
    }

    /// The tensor called `name`.
    ///
    /// # Errors
    /// When the file does not have it.
    pub fn require_tensor(&self, name: &str) -> Result<Tensor<'_>, GgufError> {
        self.tensor(name).ok_or_else(|| GgufError::MissingTensor {
            path: self.path.clone(),
            tensor: name.to_owned(),
        })
    }

    /// A name for what the file computes: hexadecimal, the same for the same weights and settings wherever the file
    /// lies, and in practice another one for any other file. Covers everything before the tensors' data, and the
    /// beginning and the end of each tensor: reading a large file whole would take seconds.
    pub fn fingerprint(&self) -> String {
        const SAMPLE_BYTES: usize = 4_096;
        let bytes = self.storage.bytes();
        let data_start = self
            .tensors
            .iter()
            .map(|info| info.start)
            .min()
            .unwrap_or(bytes.len() as u64);
        let mut hash = Sha256::new();
        hash.update(self.file_bytes().to_le_bytes());
        hash.update(bytes.get(..data_start as usize).unwrap_or_default());
        for tensor in self.tensors() {
            let len = tensor.data.len();
            hash.update(&tensor.data[..len.min(SAMPLE_BYTES)]);
            hash.update(&tensor.data[len.saturating_sub(SAMPLE_BYTES)..]);
        }
        let digest = hash.finalize();
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Where a tensor's bytes lie in the file.
    pub fn tensor_range(&self, name: &str) -> Option<Range<u64>> {
        let info = self.tensors.get(*self.by_name.get(name)?)?;
        Some(info.start..info.start + info.bytes)
    }

    /// Tells the system that a tensor's pages are not needed any more, so that they leave the process's resident
    /// memory. Reading them again is correct and merely slow. Call it once the weights have been repacked.
    pub fn release(&self, name: &str) {
        if let Some(range) = self.tensor_range(name) {
            self.storage.release(range);
        }
    }

    /// The same for some of a tensor's bytes, counted from its start.
    pub fn release_part(&self, name: &str, bytes: Range<u64>) {
        if let Some(range) = self.tensor_range(name) {
            let place = |at: u64| range.start.saturating_add(at).min(range.end);
            self.storage.release(place(bytes.start)..place(bytes.end));
        }
    }

    /// The same for every page of the file.
    pub fn release_all(&self) {
        self.storage.release(0..self.file_bytes());
    }

    /// Tells the system that a tensor is about to be read.
    pub fn will_need(&self, name: &str) {
        if let Some(range) = self.tensor_range(name) {
            self.storage.will_need(range);
        }
    }

    /// Tells the system that the file will be read once, from front to back.
    pub fn read_sequentially(&self) {
        self.storage.sequential();
    }

    fn view<'a>(&'a self, info: &'a TensorInfo) -> Tensor<'a> {
        // The range was checked against the file's length by the parser; an empty slice stands for the impossible.
        let data = usize::try_from(info.start)
            .ok()
            .and_then(|start| {
                self.storage
                    .bytes()
                    .get(start..)?
                    .get(..usize::try_from(info.bytes).ok()?)
            })
            .unwrap_or_default();
        Tensor {
            name: &info.name,
            shape: info.shape(),
            ty: info.ty,
            data,
        }
    }
}

//! Builds small GGUF files, right ones and wrong ones, for the tests.
#![allow(dead_code)]

use std::io::Write;
use std::path::PathBuf;

/// Writes a GGUF file piece by piece; nothing is checked, so that broken files can be made.
#[derive(Default, Clone)]
pub struct GgufWriter {
    entries: Vec<u8>,
    entry_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data: Vec<u8>,
}

pub fn string(text: &[u8]) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text);
    bytes
}

impl GgufWriter {
    pub fn entry(mut self, key: &str, type_id: u32, value: &[u8]) -> Self {
        self.entries.extend(string(key.as_bytes()));
        self.entries.extend(type_id.to_le_bytes());
        self.entries.extend_from_slice(value);
        self.entry_count += 1;
        self
    }

    pub fn u32(self, key: &str, value: u32) -> Self {
        self.entry(key, 4, &value.to_le_bytes())
    }

    pub fn bool(self, key: &str, value: bool) -> Self {
        self.entry(key, 7, &[u8::from(value)])
    }

    pub fn str(self, key: &str, value: &str) -> Self {
        self.entry(key, 8, &string(value.as_bytes()))
    }

    pub fn array(self, key: &str, type_id: u32, count: usize, items: &[u8]) -> Self {
        let mut value = type_id.to_le_bytes().to_vec();
        value.extend((count as u64).to_le_bytes());
        value.extend_from_slice(items);
        self.entry(key, 9, &value)
    }

    pub fn strings<S: AsRef<str>>(self, key: &str, items: &[S]) -> Self {
        let bytes: Vec<u8> = items
            .iter()
            .flat_map(|item| string(item.as_ref().as_bytes()))
            .collect();
        self.array(key, 8, items.len(), &bytes)
    }

    pub fn f32s(self, key: &str, items: &[f32]) -> Self {
        let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
        self.array(key, 6, items.len(), &bytes)
    }

    pub fn i32s(self, key: &str, items: &[i32]) -> Self {
        let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
        self.array(key, 5, items.len(), &bytes)
    }

    pub fn tensor_at(mut self, name: &str, dims: &[u64], type_id: u32, offset: u64) -> Self {
        self.tensors.extend(string(name.as_bytes()));
        self.tensors.extend((dims.len() as u32).to_le_bytes());
        self.tensors.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        self.tensors.extend(type_id.to_le_bytes());
        self.tensors.extend(offset.to_le_bytes());
        self.tensor_count += 1;
        self
    }

    /// A tensor with its data, placed at the next multiple of 32.
    pub fn tensor(mut self, name: &str, dims: &[u64], type_id: u32, data: &[u8]) -> Self {
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        let offset = self.data.len() as u64;
        self.data.extend_from_slice(data);
        self.tensor_at(name, dims, type_id, offset)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(3, self.tensor_count, self.entry_count, 32)
    }

    pub fn bytes_with(&self, version: u32, tensors: u64, entries: u64, alignment: usize) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes.extend_from_slice(&self.entries);
        bytes.extend_from_slice(&self.tensors);
        bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        bytes.extend_from_slice(&self.data);
        bytes
    }
}

/// A small valid file with every kind of value in it.
pub fn small_gguf() -> GgufWriter {
    GgufWriter::default()
        .str("general.architecture", "llama")
        .u32("general.alignment", 32)
        .entry("a.u8", 0, &[7])
        .entry("a.i8", 1, &[0xff])
        .entry("a.u16", 2, &7u16.to_le_bytes())
        .entry("a.i16", 3, &(-7i16).to_le_bytes())
        .entry("a.i32", 5, &(-7i32).to_le_bytes())
        .entry("a.f32", 6, &1.5f32.to_le_bytes())
        .bool("a.bool", true)
        .entry("a.u64", 10, &(1u64 << 40).to_le_bytes())
        .entry("a.i64", 11, &(-1i64).to_le_bytes())
        .entry("a.f64", 12, &2.5f64.to_le_bytes())
        .strings("a.strings", &["one", "", "zwölf"])
        .f32s("a.f32s", &[0.0, -1.0])
        .i32s("a.i32s", &[1, 2, 3])
        .array(
            "a.nested",
            9,
            1,
            &[&4u32.to_le_bytes()[..], &1u64.to_le_bytes(), &9u32.to_le_bytes()].concat(),
        )
        .tensor("plain", &[3, 2], 0, &[0; 24])
        .tensor("packed", &[64, 2], 2, &[1; 72])
}

/// The folder models are kept in.
pub fn models_dir() -> PathBuf {
    match std::env::var_os("REPRISE_MODELS") {
        Some(dir) => dir.into(),
        None => PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/reprise/models"),
    }
}

/// The path of a model that a test can do without; says so when it is not there.
pub fn optional_model(file: &str) -> Option<PathBuf> {
    let path = models_dir().join(file);
    if path.exists() {
        return Some(path);
    }
    // Not eprintln: the test harness hides what passing tests print with it.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: {} is not there (models/fetch brings it)",
        path.display()
    );
    None
}

/// SmolLM2, which tests may rely on.
pub fn smollm2() -> PathBuf {
    models_dir().join("SmolLM2-135M-Instruct.Q4_1.gguf")
}

/// A small deterministic generator (xorshift), so that mutation tests repeat.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// The characters that stand for the 256 bytes in byte-level vocabularies, in the order of the bytes.
pub fn byte_alphabet() -> impl Iterator<Item = char> {
    let mut moved = 0x100..;
    (0..=255u32).map(move |byte| match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from_u32(byte).unwrap(),
        _ => char::from_u32(moved.next().unwrap()).unwrap(),
    })
}

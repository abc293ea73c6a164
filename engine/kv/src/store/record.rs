//! What a chunk is to the store: its names, what is known of it, and what is given to store one.

use super::error::StoreError;
use super::policy::UseRecord;
use crate::PAGE_TOKENS;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::str::FromStr;
use xxhash_rust::xxh3::xxh3_64;

/// The most tokens a chunk has.
pub const CHUNK_TOKENS: usize = PAGE_TOKENS;
/// The most shards a chunk has.
pub const MAX_SHARDS: usize = 4_096;
/// The most bytes an owner's kind, an owner's name or a shard's name has.
pub const MAX_NAME_BYTES: usize = 256;

/// A chunk of a store. Never given to another one, even after the chunk is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(pub(super) i64);

impl ChunkId {
    pub(super) const LEAST: ChunkId = ChunkId(i64::MIN);
    pub(super) const MOST: ChunkId = ChunkId(i64::MAX);
}

impl fmt::Display for ChunkId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl FromStr for ChunkId {
    type Err = StoreError;

    /// From the sixteen hexadecimal digits that it is shown as.
    fn from_str(text: &str) -> Result<ChunkId, StoreError> {
        let is_plain = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        i64::from_str_radix(text, 16)
            .ok()
            .filter(|_| is_plain)
            .map(ChunkId)
            .ok_or_else(|| {
                StoreError::NoName(format!(
                    "{text:?} is no chunk's number: those have sixteen digits, of 0 to 9 and a to f, and begin with 0 to 7"
                ))
            })
    }
}

/// Everything that changes KV besides the tokens, as a digest that only the caller understands: weights, adapter, rope
/// settings, format, schema. Chunks of different namespaces never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(pub [u8; 32]);

/// The whole left context of a position, from the start of the text, as a digest. Two chunks with the same chain hash
/// in one namespace hold the same KV. It is SHA-256, since a chunk whose parent is gone is still believed to have had
/// it, and texts can come from strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainHash(pub(super) [u8; 32]);

impl ChainHash {
    /// The context of a text's first token: none.
    pub const START: ChainHash = ChainHash([0; 32]);

    /// This context with one chunk's tokens behind it.
    pub fn then(&self, tokens: &[u32]) -> ChainHash {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(encode_tokens(tokens));
        ChainHash(hash.finalize().into())
    }

    /// The digest.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The 64-bit hash of tokens alone, wherever they stand: XXH3 of their ids as big-endian 32-bit numbers. Equal hashes
/// are a hint; the store compares the tokens.
pub fn content_hash(tokens: &[u32]) -> u64 {
    xxh3_64(&encode_tokens(tokens))
}

/// Token ids as the index stores them: big-endian, so that bytes sort as tokens do.
pub(super) fn encode_tokens(tokens: &[u32]) -> Vec<u8> {
    tokens.iter().flat_map(|token| token.to_be_bytes()).collect()
}

/// The tokens of a stored blob.
pub(super) fn decode_tokens(bytes: &[u8]) -> Result<Vec<u32>, StoreError> {
    let (tokens, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || tokens.is_empty() || tokens.len() > CHUNK_TOKENS {
        return Err(StoreError::IndexDamaged {
            what: format!("{} bytes of token ids in one chunk", bytes.len()),
        });
    }
    Ok(tokens.iter().map(|token| u32::from_be_bytes(*token)).collect())
}

/// On whose behalf a chunk is kept, as in `chat:12` or `document:report.pdf`. A chunk may have several owners.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    kind: String,
    name: String,
}

impl Owner {
    /// An owner of a kind, such as "chat", "document" or "skill", with a name that is unique among its kind.
    ///
    /// # Errors
    /// [`StoreError::NoName`] when either is empty or longer than [`MAX_NAME_BYTES`], or the kind has a colon.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Result<Owner, StoreError> {
        let (kind, name) = (kind.into(), name.into());
        for (what, text) in [("kind", &kind), ("name", &name)] {
            if text.is_empty() || text.len() > MAX_NAME_BYTES {
                return Err(StoreError::NoName(format!(
                    "an owner's {what} of {} bytes, allowed are 1 to {MAX_NAME_BYTES}",
                    text.len()
                )));
            }
        }
        if kind.contains(':') {
            return Err(StoreError::NoName(format!("the owner kind {kind:?} has a colon")));
        }
        Ok(Owner { kind, name })
    }

    /// What it is, as in "chat".
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Which one of its kind.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for Owner {
    type Err = StoreError;

    /// From the form in which it is shown, as in `chat:12`.
    fn from_str(text: &str) -> Result<Owner, StoreError> {
        match text.split_once(':') {
            Some((kind, name)) => Owner::new(kind, name),
            None => Err(StoreError::NoName(format!(
                "{text:?} is no owner: those have a kind and a name, as in document:report.pdf"
            ))),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.kind, self.name)
    }
}

/// A chunk to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewChunk<'a> {
    /// What its KV depends on besides the tokens.
    pub namespace: Namespace,
    /// The context it was computed under: the chain hash of the chunk before it, [`ChainHash::START`] for the first.
    /// That chunk need not be stored.
    pub parent: ChainHash,
    /// The position of its first token, at which its keys are rotated.
    pub base: u32,
    /// Its tokens, 1 to [`CHUNK_TOKENS`].
    pub tokens: &'a [u32],
    /// On whose behalf.
    pub owner: &'a Owner,
    /// The recompute ratio it was made under, from 0 to 1: 1 when all tokens were computed in their context, so that
    /// its KV is exact.
    pub ratio: f32,
    /// What retrieval knows of the text already, where it knows anything: chunks with a similar one are looked at
    /// when runs of tokens are looked for ([`ChunkStore::runs`](super::ChunkStore::runs)).
    pub embedding: Option<&'a [f32]>,
}

/// The bytes of one shard of layers, to be written from where they are.
pub struct Shard<'a> {
    /// The tensor's name: letters, digits, dots, dashes and underscores, unique in the chunk.
    pub name: &'a str,
    /// All bytes that `parts` will give.
    pub bytes: u64,
    /// The bytes, in order. Read once, while the file is written.
    pub parts: Box<dyn Iterator<Item = &'a [u8]> + 'a>,
}

impl fmt::Debug for Shard<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Shard({:?}, {} bytes)", self.name, self.bytes)
    }
}

impl<'a> Shard<'a> {
    /// A shard that lies in memory in one piece.
    pub fn whole(name: &'a str, bytes: &'a [u8]) -> Shard<'a> {
        Shard {
            name,
            bytes: bytes.len() as u64,
            parts: Box::new(std::iter::once(bytes)),
        }
    }
}

/// One tensor of a stored chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardRecord {
    /// The tensor's name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// XXH3 of its bytes, 64 bits.
    pub checksum: u64,
}

/// What the index knows of a stored chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkRecord {
    /// The chunk.
    pub id: ChunkId,
    /// What its KV depends on besides the tokens.
    pub namespace: Namespace,
    /// The context it was computed under.
    pub parent: ChainHash,
    /// That context and its own tokens.
    pub chain: ChainHash,
    /// The hash of its tokens alone.
    pub content: u64,
    /// The position of its first token.
    pub base: u32,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// On whose behalf it is kept, in order of name.
    pub owners: Vec<Owner>,
    /// The recompute ratio it was made under; 1 is exact.
    pub ratio: f32,
    /// When it was stored: milliseconds since 1970, by the clock of that time.
    pub made_ms: i64,
    /// Bytes of its file, header and all; of one that the index holds, of its tensors.
    pub bytes: u64,
    /// Its tensors, in order.
    pub shards: Vec<ShardRecord>,
    /// Whether it is exempt from eviction.
    pub pinned: bool,
    /// How much it was used lately.
    pub uses: UseRecord,
}

/// Dimensions that are kept of a dense embedding. Models are trained so that the first ones say most.
const EMBEDDING_DIMENSIONS: usize = 64;

/// The direction of a text's dense embedding in its first dimensions, in steps of 1/127.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Embedding(Box<[i8]>);

impl Embedding {
    /// Nothing for a vector without a direction.
    pub(super) fn new(vector: &[f32]) -> Option<Embedding> {
        let kept = &vector[..vector.len().min(EMBEDDING_DIMENSIONS)];
        let length = kept.iter().map(|value| value * value).sum::<f32>().sqrt();
        let step = |value: &f32| (value / length * 127.0).round() as i8;
        (length.is_normal()).then(|| Embedding(kept.iter().map(step).collect()))
    }

    /// The cosine of the angle between two, in units of 127 * 127; 0 for those of different models.
    pub(super) fn likeness(&self, other: &Embedding) -> i32 {
        if self.0.len() != other.0.len() {
            return 0;
        }
        let products = self.0.iter().zip(&other.0);
        products.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        self.0.iter().map(|value| value.cast_unsigned()).collect()
    }

    pub(super) fn decode(bytes: &[u8]) -> Embedding {
        Embedding(bytes.iter().map(|byte| byte.cast_signed()).collect())
    }
}

/// A digest in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn invalid(what: String) -> Result<(), StoreError> {
    Err(StoreError::Invalid(what))
}

/// Turns down a chunk that the format has no room for.
pub(super) fn check(chunk: &NewChunk<'_>) -> Result<(), StoreError> {
    let count = chunk.tokens.len();
    if count == 0 || count > CHUNK_TOKENS {
        return invalid(format!("it has {count} tokens, allowed are 1 to {CHUNK_TOKENS}"));
    }
    if !(0.0..=1.0).contains(&chunk.ratio) {
        return invalid(format!(
            "its recompute ratio is {}, allowed is 0 to 1",
            chunk.ratio
        ));
    }
    Ok(())
}

/// Turns down shards that the format has no room for. Gives their bytes together.
pub(super) fn check_shards(shards: &[Shard<'_>]) -> Result<u64, StoreError> {
    let invalid = |what: String| Err(StoreError::Invalid(what));
    if shards.is_empty() || shards.len() > MAX_SHARDS {
        return invalid(format!(
            "it has {} shards, allowed are 1 to {MAX_SHARDS}",
            shards.len()
        ));
    }
    let mut names: Vec<&str> = shards.iter().map(|shard| shard.name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return invalid(format!("two of its shards have the name {:?}", twice[0]));
    }
    let plain = |name: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !name.is_empty()
            && name.len() <= MAX_NAME_BYTES
            && name.bytes().all(allowed)
            && name != "__metadata__"
    };
    if let Some(name) = names.into_iter().find(|name| !plain(name)) {
        return invalid(format!(
            "the shard name {name:?}: it may have 1 to {MAX_NAME_BYTES} letters, digits, dots, dashes and underscores"
        ));
    }
    // So that no sum of sizes overflows, here or in the index's signed numbers.
    let total = shards
        .iter()
        .try_fold(0_u64, |sum, shard| sum.checked_add(shard.bytes));
    match total.filter(|bytes| *bytes <= 1 << 48) {
        Some(bytes) => Ok(bytes),
        None => invalid("its shards have more than 2^48 bytes".to_owned()),
    }
}

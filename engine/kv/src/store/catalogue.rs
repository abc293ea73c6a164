//! What matching and eviction ask of the index, in memory: every chunk's tokens, its place in the prefix tree, and its
//! fingerprints. A prompt is matched without a question to SQLite, so that it waits for no transaction and no disk.
//!
//! Chunks whose bytes are not on disk yet stand here as well: they are found like all others, and the index hears of
//! them when they are written. Everything else here is what the index says, read once at opening: about 2 KB a chunk.

use super::grams::fingerprints;
use super::policy::{Candidate, UseRecord};
use super::record::{ChainHash, ChunkId, Embedding, Namespace, Owner, content_hash};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

/// A place in the tree.
pub(super) type Node = (Namespace, ChainHash);

#[derive(Debug, Default)]
pub(super) struct Catalogue {
    spaces: HashMap<Namespace, Texts>,
    entries: HashMap<ChunkId, Entry>,
    /// Chunks with uses that the index has not heard of.
    unsaved: HashSet<ChunkId>,
    /// Chunks on disk, and their bytes.
    written: (usize, u64),
    /// The number of the next chunk.
    next: i64,
}

/// A chunk.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) namespace: Namespace,
    pub(super) parent: ChainHash,
    pub(super) chain: ChainHash,
    pub(super) base: u32,
    pub(super) tokens: Box<[u32]>,
    pub(super) embedding: Option<Embedding>,
    pub(super) ratio: f32,
    /// Bytes on disk; 0 before it is there.
    pub(super) bytes: u64,
    pub(super) pinned: bool,
    pub(super) uses: UseRecord,
    /// On whose behalf it will be written; none once it is, when the index knows the owners.
    pub(super) pending: Option<Vec<Owner>>,
}

/// The texts of a namespace.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// The chunks below each context, sorted by their tokens.
    children: HashMap<ChainHash, Vec<ChunkId>>,
    contents: BTreeSet<(u64, ChunkId)>,
    grams: BTreeSet<(i64, ChunkId)>,
    with_embedding: BTreeSet<ChunkId>,
}

#[derive(Default)]
struct Gathered {
    contents: Vec<(u64, ChunkId)>,
    grams: Vec<(i64, ChunkId)>,
}

impl Texts {
    /// Chunks with this content hash, oldest first.
    pub(super) fn with_content(&self, hash: u64) -> impl DoubleEndedIterator<Item = ChunkId> {
        self.contents
            .range((hash, ChunkId::LEAST)..=(hash, ChunkId::MOST))
            .map(|(_, id)| *id)
    }

    /// Chunks with this fingerprint, oldest first.
    pub(super) fn with_gram(&self, gram: i64) -> impl DoubleEndedIterator<Item = ChunkId> {
        self.grams
            .range((gram, ChunkId::LEAST)..=(gram, ChunkId::MOST))
            .map(|(_, id)| *id)
    }

    /// Chunks below a context, sorted by their tokens.
    pub(super) fn children(&self, parent: ChainHash) -> &[ChunkId] {
        self.children.get(&parent).map_or(&[], Vec::as_slice)
    }

    /// Chunks with an embedding.
    pub(super) fn with_embedding(&self) -> impl Iterator<Item = ChunkId> {
        self.with_embedding.iter().copied()
    }
}

impl Catalogue {
    /// One of chunks on disk, that numbers new ones from `next` on.
    pub(super) fn of(entries: Vec<(ChunkId, Entry)>, next: i64) -> Catalogue {
        let mut catalogue = Catalogue {
            next,
            entries: HashMap::with_capacity(entries.len()),
            ..Catalogue::default()
        };
        // Sets are made at once out of all that is to stand in them: several times as quick as one by one.
        let mut gathered: HashMap<Namespace, Gathered> = HashMap::new();
        for (id, entry) in entries {
            let gathered = gathered.entry(entry.namespace).or_default();
            gathered.contents.push((content_hash(&entry.tokens), id));
            let grams = fingerprints(&entry.tokens);
            gathered.grams.extend(grams.into_iter().map(|gram| (gram, id)));
            let texts = catalogue.spaces.entry(entry.namespace).or_default();
            texts.children.entry(entry.parent).or_default().push(id);
            if entry.embedding.is_some() {
                texts.with_embedding.insert(id);
            }
            catalogue.written.0 += 1;
            catalogue.written.1 += entry.bytes;
            catalogue.entries.insert(id, entry);
        }
        let Catalogue { spaces, entries, .. } = &mut catalogue;
        for (namespace, texts) in spaces {
            for siblings in texts.children.values_mut() {
                siblings.sort_by_key(|id| entries.get(id).map_or(&[][..], |entry| &entry.tokens));
            }
            if let Some(gathered) = gathered.remove(namespace) {
                texts.contents = gathered.contents.into_iter().collect();
                texts.grams = gathered.grams.into_iter().collect();
            }
        }
        catalogue
    }

    pub(super) fn texts(&self, namespace: Namespace) -> Option<&Texts> {
        self.spaces.get(&namespace)
    }

    pub(super) fn get(&self, id: ChunkId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ChunkId) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    /// The tokens of a chunk; none of one that is not there.
    pub(super) fn tokens(&self, id: ChunkId) -> &[u32] {
        self.entries.get(&id).map_or(&[], |entry| &entry.tokens)
    }

    /// Gives a new chunk its number.
    pub(super) fn number(&mut self) -> ChunkId {
        let id = ChunkId(self.next);
        self.next = self.next.saturating_add(1);
        id
    }

    pub(super) fn insert(&mut self, id: ChunkId, entry: Entry) {
        let Catalogue { spaces, entries, .. } = self;
        let texts = spaces.entry(entry.namespace).or_default();
        let siblings = texts.children.entry(entry.parent).or_default();
        let tokens = |id: &ChunkId| entries.get(id).map_or(&[][..], |entry| &entry.tokens);
        let at = siblings.partition_point(|sibling| tokens(sibling) < &entry.tokens);
        siblings.insert(at, id);
        texts.contents.insert((content_hash(&entry.tokens), id));
        let grams = fingerprints(&entry.tokens);
        texts.grams.extend(grams.into_iter().map(|gram| (gram, id)));
        if entry.embedding.is_some() {
            texts.with_embedding.insert(id);
        }
        if entry.pending.is_none() {
            self.written.0 += 1;
            self.written.1 += entry.bytes;
        }
        entries.insert(id, entry);
    }

    /// Notes that a chunk is on disk, with so many bytes, and gives the owners it was written for; nothing when it is
    /// gone.
    pub(super) fn write(&mut self, id: ChunkId, bytes: u64) -> Option<Vec<Owner>> {
        let entry = self.entries.get_mut(&id)?;
        let owners = entry.pending.take()?;
        entry.bytes = bytes;
        self.written.0 += 1;
        self.written.1 += bytes;
        Some(owners)
    }

    /// Chunks on disk, and their bytes.
    pub(super) fn written(&self) -> (usize, u64) {
        self.written
    }

    pub(super) fn remove(&mut self, id: ChunkId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.unsaved.remove(&id);
        if entry.pending.is_none() {
            self.written.0 -= 1;
            self.written.1 -= entry.bytes;
        }
        let texts = self.spaces.get_mut(&entry.namespace)?;
        if let Some(siblings) = texts.children.get_mut(&entry.parent) {
            siblings.retain(|sibling| *sibling != id);
            if siblings.is_empty() {
                texts.children.remove(&entry.parent);
            }
        }
        texts.contents.remove(&(content_hash(&entry.tokens), id));
        for gram in fingerprints(&entry.tokens) {
            texts.grams.remove(&(gram, id));
        }
        texts.with_embedding.remove(&id);
        if texts.children.is_empty() {
            self.spaces.remove(&entry.namespace);
        }
        Some(entry)
    }

    /// The chunk with exactly this context and these tokens.
    pub(super) fn same_chain(
        &self,
        namespace: Namespace,
        parent: ChainHash,
        tokens: &[u32],
    ) -> Option<ChunkId> {
        let siblings = self.texts(namespace)?.children(parent);
        let at = siblings.partition_point(|sibling| self.tokens(*sibling) < tokens);
        let id = *siblings.get(at)?;
        (self.tokens(id) == tokens).then_some(id)
    }

    /// Notes a use; false when there is no such chunk.
    pub(super) fn used(&mut self, id: ChunkId, now_ms: i64, half_life: Duration) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return false;
        };
        entry.uses = entry.uses.used(now_ms, half_life);
        if entry.pending.is_none() {
            self.unsaved.insert(id);
        }
        true
    }

    /// Chunks with uses that the index has not heard of, which it is to hear of now.
    pub(super) fn take_unsaved(&mut self) -> Vec<(ChunkId, UseRecord)> {
        let unsaved = std::mem::take(&mut self.unsaved);
        unsaved
            .into_iter()
            .filter_map(|id| Some((id, self.entries.get(&id)?.uses)))
            .collect()
    }

    /// Chunks that are not on disk and of nobody but this owner; of others the owner is taken off.
    pub(super) fn disown_pending(&mut self, owner: &Owner) -> Vec<ChunkId> {
        let mut alone = Vec::new();
        for (id, entry) in &mut self.entries {
            if let Some(owners) = &mut entry.pending {
                let before = owners.len();
                owners.retain(|one| one != owner);
                if owners.is_empty() && before > 0 {
                    alone.push(*id);
                }
            }
        }
        alone
    }

    /// Chunks on disk as eviction sees them at a time, in order of age.
    pub(super) fn candidates(&self, now_ms: i64, half_life: Duration) -> Vec<(ChunkId, Candidate<Node>)> {
        let mut all: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.pending.is_none())
            .map(|(id, entry)| {
                let candidate = Candidate {
                    parent: (entry.namespace, entry.parent),
                    node: (entry.namespace, entry.chain),
                    tokens: entry.tokens.len(),
                    bytes: entry.bytes,
                    weight: entry.uses.weight_at(now_ms, half_life),
                    pinned: entry.pinned,
                };
                (*id, candidate)
            })
            .collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }
}

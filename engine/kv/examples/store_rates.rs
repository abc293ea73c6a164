//! How long the store takes to match a prompt, to store, to load, to rank and to open, by the number of chunks in it.
//!
//! `cargo run --release -p reprise-kv --example store_rates [CHUNKS ...]`, by default with 100, 10,000 and 100,000
//! chunks. Chunks are full and hang in chains of 32, as documents of 8,192 tokens; their KV is one kilobyte each, so
//! that the index is what is measured. Medians of 21, and in brackets the least, for a machine that is busy with other
//! things. Prompts have 3,000 tokens and other documents each time:
//!
//! - `prefix`: all of it begins a stored document;
//! - `moved`: six passages of two chunks each, from the middle of documents, in front of a question;
//! - `nothing`: twelve passages that nobody has read, in front of a question;
//! - `runs`: 500 tokens from the middle of a document's chunks between new ones.
//!
//! Each is asked as the engine asks: for the beginning, then for each passage, then for runs of what is left.

use reprise_kv::store::{
    CHUNK_TOKENS, ChainHash, ChunkStore, ListOrder, MIN_RUN_TOKENS, Namespace, NewChunk, Owner, Shard,
    StoreOptions,
};
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

const SPACE: Namespace = Namespace([1; 32]);
const CHAIN_CHUNKS: u32 = 32;
const PROMPT_TOKENS: usize = 3_000;
const REPEATS: u32 = 21;

fn main() -> Result<(), Box<dyn Error>> {
    let counts: Vec<u32> = std::env::args()
        .skip(1)
        .map(|count| count.parse())
        .collect::<Result<_, _>>()?;
    println!(
        "chunks   prefix            moved             nothing           runs              store    load     rank    open     index"
    );
    for count in if counts.is_empty() {
        vec![100, 10_000, 100_000]
    } else {
        counts
    } {
        let folder = tempfile::tempdir()?;
        measure(folder.path(), count)?;
    }
    Ok(())
}

/// A prompt and the passages in it.
struct Prompt {
    tokens: Vec<u32>,
    passages: Vec<Range<usize>>,
}

fn measure(folder: &Path, count: u32) -> Result<(), Box<dyn Error>> {
    let (store, _) = ChunkStore::open(folder, StoreOptions::default())?;
    let began = Instant::now();
    for document in 0..count.div_ceil(CHAIN_CHUNKS) {
        let chunks = CHAIN_CHUNKS.min(count - document * CHAIN_CHUNKS);
        store_document(&store, document, chunks)?;
    }
    let stored = began.elapsed() / count;
    drop(store);

    let began = Instant::now();
    let (store, recovery) = ChunkStore::open(folder, StoreOptions::default())?;
    let open = began.elapsed();
    assert!(recovery.is_clean());

    // Documents that are stored in full.
    let documents = count / CHAIN_CHUNKS;
    let mut times: [Vec<Duration>; 6] = Default::default();
    for repeat in 0..REPEATS {
        let prompts = [
            prefix(repeat, documents),
            moved(repeat, documents),
            nothing(repeat),
            run(repeat, documents),
        ];
        let expected = [PROMPT_TOKENS, 12 * CHUNK_TOKENS, 0, 480];
        for ((prompt, expected), times) in prompts.iter().zip(expected).zip(&mut times) {
            let began = Instant::now();
            let found = find(&store, prompt);
            times.push(began.elapsed());
            assert!(
                found >= expected && (expected > 0 || found < 8),
                "{found} of {expected}"
            );
        }
        let first = store
            .longest_prefix(SPACE, ChainHash::START, &prompts[0].tokens)
            .chunks[0]
            .chunk;
        let began = Instant::now();
        assert_eq!(store.load(first)?.read_all()?.len(), 1);
        times[4].push(began.elapsed());
        if repeat < 3 {
            let began = Instant::now();
            assert_eq!(store.list(None, ListOrder::Score)?.len(), count as usize);
            times[5].push(began.elapsed());
        }
    }
    let [prefix, moved, nothing, runs, load, rank] = times.map(median_and_least);
    let shown = |(median, least): (f64, f64)| format!("{median:.3}ms ({least:.3})");
    println!(
        "{count:7}  {:16}  {:16}  {:16}  {:16}  {:5.2}ms  {:5.3}ms  {:4.0}ms  {:5.0}ms  {:4.0}MB",
        shown(prefix),
        shown(moved),
        shown(nothing),
        shown(runs),
        1e3 * stored.as_secs_f64(),
        load.0,
        rank.0,
        1e3 * open.as_secs_f64(),
        store.stats()?.index_bytes as f64 / 1e6,
    );
    Ok(())
}

/// Finds what is stored of a prompt and gives how many tokens that are.
fn find(store: &ChunkStore, prompt: &Prompt) -> usize {
    let stored = store.longest_prefix(SPACE, ChainHash::START, &prompt.tokens);
    let (mut found, mut from) = (stored.tokens, stored.tokens);
    let runs = |range: Range<usize>| {
        if range.len() < MIN_RUN_TOKENS {
            return 0;
        }
        let runs = store.runs(SPACE, &prompt.tokens[range], None);
        runs.iter().map(|run| run.in_prompt.len()).sum::<usize>()
    };
    for passage in &prompt.passages {
        let is_left = passage.start >= from;
        let tokens = &prompt.tokens[passage.clone()];
        if is_left && store.exact_with_content(SPACE, tokens).is_some() {
            found += runs(from..passage.start) + tokens.len();
            from = passage.end;
        }
    }
    found + runs(from..prompt.tokens.len())
}

fn store_document(store: &ChunkStore, number: u32, chunks: u32) -> Result<(), Box<dyn Error>> {
    let owner = Owner::new("document", number.to_string())?;
    let tokens = document(number, chunks as usize * CHUNK_TOKENS);
    let mut parent = ChainHash::START;
    let mut batch = store.batch();
    for (at, tokens) in tokens.chunks(CHUNK_TOKENS).enumerate() {
        let announced = store.announce(&NewChunk {
            namespace: SPACE,
            parent,
            base: (at * CHUNK_TOKENS) as u32,
            tokens,
            owner: &owner,
            ratio: 1.0,
            embedding: None,
        })?;
        batch.add(announced.id(), vec![Shard::whole("all", &[number as u8; 1_000])])?;
        parent = parent.then(tokens);
    }
    batch.commit()?;
    Ok(())
}

/// Words as a language has them: few that are frequent, many that are rare. The same for the same number.
fn document(number: u32, tokens: usize) -> Vec<u32> {
    let mut state = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    (0..tokens)
        .map(|_| (50_000_f64.powf(random()) - 1.0) as u32)
        .collect()
}

fn prefix(repeat: u32, documents: u32) -> Prompt {
    Prompt {
        tokens: document(repeat * 7_919 % documents, PROMPT_TOKENS),
        passages: Vec::new(),
    }
}

/// Twelve chunks, two of each of six documents, behind a system text that is new.
fn moved(repeat: u32, documents: u32) -> Prompt {
    let mut tokens = document(u32::MAX - repeat, 20);
    let mut passages = Vec::new();
    for passage in 0..6 {
        let text = document(
            (repeat * 104_729 + passage * 31 + 1) % documents,
            8 * CHUNK_TOKENS,
        );
        for chunk in [4, 5] {
            let start = tokens.len();
            tokens.extend(&text[chunk * CHUNK_TOKENS..(chunk + 1) * CHUNK_TOKENS]);
            passages.push(start..tokens.len());
        }
    }
    tokens.extend(document(u32::MAX / 2 - repeat, 30));
    Prompt { tokens, passages }
}

fn nothing(repeat: u32) -> Prompt {
    let tokens = document(u32::MAX / 4 + repeat, PROMPT_TOKENS);
    let passages = (0..12).map(|at| at * 245..(at + 1) * 245).collect();
    Prompt { tokens, passages }
}

fn run(repeat: u32, documents: u32) -> Prompt {
    let mut tokens = document(u32::MAX - 999 - repeat, 1_000);
    tokens.extend(&document(repeat * 7_919 % documents, 1_600)[1_100..1_600]);
    tokens.extend(document(u32::MAX / 3 - repeat, PROMPT_TOKENS - tokens.len()));
    Prompt {
        tokens,
        passages: Vec::new(),
    }
}

fn median_and_least(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let ms = |at: usize| times.get(at).map_or(f64::NAN, |time| 1e3 * time.as_secs_f64());
    (ms(times.len() / 2), ms(0))
}

//! How long the store takes to match a prompt, to put, to load and to open, by the number of chunks in it.
//!
//! `cargo run --release -p reprise-kv --example store_rates [CHUNKS ...]`, by default with 10,000 and 100,000 chunks.
//! Chunks are full and hang in chains of 32, as documents of 8,192 tokens; their KV is one kilobyte each, so that the
//! index is what is measured. Medians of 21; beside that of all three, the least, for a machine that is busy with
//! other things. The prompt has 3,000 tokens: 1,500 that begin a stored document, then 500 from the middle
//! of another, then new ones.

use reprise_kv::store::{
    CHUNK_TOKENS, ChainHash, ChunkId, ChunkStore, ListOrder, Namespace, NewChunk, Owner, Shard, StoreOptions,
};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

const SPACE: Namespace = Namespace([1; 32]);
const CHAIN_CHUNKS: u32 = 32;
const PROMPT_TOKENS: usize = 3_000;
const REPEATS: usize = 21;

fn main() -> Result<(), Box<dyn Error>> {
    let counts: Vec<u32> = std::env::args()
        .skip(1)
        .map(|count| count.parse())
        .collect::<Result<_, _>>()?;
    println!(
        "chunks    prefix   content      runs   all three   (least)   put      load     open     rank     index"
    );
    for count in if counts.is_empty() {
        vec![10_000, 100_000]
    } else {
        counts
    } {
        let folder = tempfile::tempdir()?;
        measure(folder.path(), count)?;
    }
    Ok(())
}

fn measure(folder: &Path, count: u32) -> Result<(), Box<dyn Error>> {
    let (store, _) = ChunkStore::open(folder, StoreOptions::default())?;
    let began = Instant::now();
    for document in 0..count.div_ceil(CHAIN_CHUNKS) {
        put_document(
            &store,
            document,
            CHAIN_CHUNKS.min(count - document * CHAIN_CHUNKS),
        )?;
    }
    let put = began.elapsed() / count;
    drop(store);

    let began = Instant::now();
    let (store, recovery) = ChunkStore::open(folder, StoreOptions::default())?;
    let open = began.elapsed();
    assert!(recovery.is_clean());

    let mut times: [Vec<Duration>; 6] = Default::default();
    for repeat in 0..REPEATS as u32 {
        // Other documents each time: what the last prompt read is of no help.
        let documents = count / CHAIN_CHUNKS;
        let prompt = prompt(repeat * 7_919 % documents, (repeat * 104_729 + 1) % documents);
        let timed = |times: &mut Vec<Duration>, work: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
            let began = Instant::now();
            work()?;
            times.push(began.elapsed());
            Ok::<(), Box<dyn Error>>(())
        };
        let mut id: Option<ChunkId> = None;
        timed(&mut times[0], &mut || {
            let found = store.longest_prefix(SPACE, ChainHash::START, &prompt);
            assert!(found.tokens >= 1_500);
            id = found.chunks.first().map(|chunk| chunk.chunk);
            Ok(())
        })?;
        timed(&mut times[1], &mut || {
            for part in prompt.chunks(CHUNK_TOKENS) {
                store.with_content(SPACE, part);
            }
            Ok(())
        })?;
        timed(&mut times[2], &mut || {
            let runs = store.runs(SPACE, &prompt, None);
            assert!(runs.iter().any(|run| run.in_prompt.contains(&1_600)));
            Ok(())
        })?;
        let all = times[..3].iter().filter_map(|times| times.last()).sum();
        times[3].push(all);
        timed(&mut times[4], &mut || {
            let id = id.ok_or("no chunk was found")?;
            assert_eq!(store.load(id)?.read_all()?.len(), 1);
            Ok(())
        })?;
        if repeat < 3 {
            timed(&mut times[5], &mut || {
                assert_eq!(store.list(None, ListOrder::Score)?.len(), count as usize);
                Ok(())
            })?;
        }
    }
    let least = times[3]
        .iter()
        .min()
        .map_or(f64::NAN, |time| 1e3 * time.as_secs_f64());
    let [prefix, content, runs, all, load, rank] = times.map(median_ms);
    println!(
        "{count:7} {prefix:7.3}ms {content:7.3}ms {runs:7.3}ms  {all:7.3}ms {least:7.3}ms {:6.2}ms {load:6.3}ms {:6.0}ms {rank:6.0}ms {:5.0}MB",
        1e3 * put.as_secs_f64(),
        1e3 * open.as_secs_f64(),
        store.stats()?.index_bytes as f64 / 1e6,
    );
    Ok(())
}

fn put_document(store: &ChunkStore, number: u32, chunks: u32) -> Result<(), Box<dyn Error>> {
    let owner = Owner::new("document", number.to_string())?;
    let tokens = document(number, chunks as usize * CHUNK_TOKENS);
    let mut parent = ChainHash::START;
    for (at, tokens) in tokens.chunks(CHUNK_TOKENS).enumerate() {
        let chunk = NewChunk {
            namespace: SPACE,
            parent,
            base: (at * CHUNK_TOKENS) as u32,
            tokens,
            owner: &owner,
            ratio: 1.0,
            embedding: None,
        };
        store.put(&chunk, vec![Shard::whole("all", &[number as u8; 1_000])])?;
        parent = parent.then(tokens);
    }
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

fn prompt(first: u32, second: u32) -> Vec<u32> {
    let mut prompt = document(first, 1_500);
    prompt.extend(&document(second, 3_000)[1_000..1_500]);
    let new = document(u32::MAX - first, PROMPT_TOKENS - prompt.len());
    prompt.extend(new);
    prompt
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times
        .get(times.len() / 2)
        .map_or(f64::NAN, |time| 1e3 * time.as_secs_f64())
}

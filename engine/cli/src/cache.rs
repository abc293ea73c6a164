//! `reprise cache`: what is kept on disk of the texts that were read, and how to get rid of it.

use clap::{Subcommand, ValueEnum};
use reprise_engine::store::{ChunkId, ChunkStore, ChunkSummary, ListOrder, Owner, StoreError};
use reprise_library::cache::Cache;
use reprise_library::files::in_a_line;
use reprise_library::folders;
use reprise_library::index::DocumentId;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::{counted, note, print, with_commas};
use crate::warm::{self, WarmArguments};

#[derive(Debug, Subcommand)]
pub enum CacheAction {
    /// List what is kept, by owner, or the chunks of one
    Ls {
        /// The chunks of this owner, such as document:report.pdf
        #[arg(long, value_name = "OWNER")]
        owner: Option<Owner>,
        /// Every chunk, the largest first, or the one most worth keeping
        #[arg(long, value_name = "ORDER")]
        by: Option<Order>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show all that is known of a chunk
    Show {
        /// Its number
        chunk: ChunkId,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Keep chunks, whatever else has to go
    Pin {
        /// Their numbers
        #[arg(required = true)]
        chunks: Vec<ChunkId>,
        /// Let them go like any other again
        #[arg(long)]
        off: bool,
    },
    /// Let chunks go; their text is read again when it is needed
    Evict {
        /// Their numbers
        #[arg(required = true)]
        chunks: Vec<ChunkId>,
    },
    /// Erase everything that is kept for an owner, leaving no trace on disk
    Erase {
        /// Such as document:report.pdf, or chat:12
        #[arg(long, value_name = "OWNER")]
        owner: Owner,
    },
    /// Read documents ahead, so that the first question about them is answered at once
    Warm(WarmArguments),
    /// Read every chunk, and drop those whose file is not what was written
    Verify,
    /// Sum up
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// An order of chunks.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Order {
    Size,
    Score,
}

pub fn run(action: CacheAction) -> Outcome {
    if let CacheAction::Warm(arguments) = &action {
        return warm::run(arguments);
    }
    let folder = folders::kv()?;
    let opened = Cache::open(&folder).map_err(failure)?;
    let Some(cache) = opened else {
        return Err(Failure::message(format!(
            "nothing is kept yet: {} is made when something is read (reprise ask, chat or serve, or the window)",
            folders::shown(&folder)
        )));
    };
    if let Some(mended) = cache.mended() {
        note(&format!("note: {mended}"));
    }
    let store = cache.store();
    match action {
        CacheAction::Ls { owner, by, json } => {
            let owner = owner.map(|owner| meant(store, owner)).transpose()?;
            list(store, owner.as_ref(), by, json)
        }
        CacheAction::Show { chunk, json } => show(store, chunk, json),
        CacheAction::Pin { chunks, off } => {
            cache.set_pinned(&chunks, !off).map_err(failure)?;
            let what = if off { "unpinned" } else { "pinned" };
            print(&format!("{what} {}\n", counted(chunks.len(), "chunk")))
        }
        CacheAction::Evict { chunks } => {
            let erased = cache.evict(&chunks).map_err(failure)?;
            print(&format!(
                "let go {}, {}\n",
                counted(erased.chunks, "chunk"),
                size(erased.bytes)
            ))
        }
        CacheAction::Erase { owner } => {
            let owner = meant(store, owner)?;
            let erased = cache.erase(&owner)?;
            if erased.chunks + erased.kept == 0 {
                return Err(Failure::message(format!(
                    "nothing is kept for {owner}; see the owners with: reprise cache ls"
                )));
            }
            let shared = match erased.kept {
                0 => String::new(),
                kept => format!("; {} that others own too stay with them", counted(kept, "chunk")),
            };
            print(&format!(
                "erased {}, {}{shared}\n",
                counted(erased.chunks, "chunk"),
                size(erased.bytes)
            ))
        }
        CacheAction::Warm(_) => unreachable!("done above, with an engine"),
        CacheAction::Verify => {
            let verified = store.verify_all().map_err(failure)?;
            for fault in &verified.dropped {
                note(&fault.to_string());
            }
            print(&format!(
                "{} as written, {} dropped\n",
                counted(verified.sound, "chunk"),
                with_commas(verified.dropped.len())
            ))
        }
        CacheAction::Stats { json } => stats(store, json),
    }
}

fn failure(error: StoreError) -> Failure {
    Failure::message(error.to_string())
}

/// The owner that is meant: this one, or the only document of this name, whose number need not be written.
fn meant(store: &ChunkStore, owner: Owner) -> Outcome<Owner> {
    let owners = store.owners().map_err(failure)?;
    if owners.iter().any(|known| known.owner == owner) {
        return Ok(owner);
    }
    let called: Vec<Owner> = owners
        .into_iter()
        .map(|known| known.owner)
        .filter(|known| {
            known.kind() == owner.kind() && DocumentId::is_owner_called(known.name(), owner.name())
        })
        .collect();
    match called.as_slice() {
        [] => Ok(owner),
        [one] => Ok(one.clone()),
        several => Err(Failure::Usage(format!(
            "several documents are called {}; name one with its number:{}",
            owner.name(),
            several
                .iter()
                .map(|one| format!("\n  {}", in_a_line(&one.to_string())))
                .collect::<String>()
        ))),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

fn list(store: &ChunkStore, owner: Option<&Owner>, by: Option<Order>, is_json: bool) -> Outcome {
    if owner.is_none() && by.is_none() {
        return owners(store, is_json);
    }
    let order = match by.unwrap_or(Order::Score) {
        Order::Size => ListOrder::Size,
        Order::Score => ListOrder::Score,
    };
    let chunks = store.list(owner, order).map_err(failure)?;
    if let (Some(owner), true) = (owner, chunks.is_empty()) {
        return Err(Failure::message(format!(
            "nothing is kept for {owner}; see the owners with: reprise cache ls"
        )));
    }
    if is_json {
        let rows: Vec<_> = chunks.iter().map(summary).collect();
        return print(&format!("{}\n", serde_json::to_string_pretty(&rows)?));
    }
    let mut text = format!(
        "{:16}  {:>6}  {:>9}  {:>6}  {:>9}\n",
        "CHUNK", "TOKENS", "SIZE", "USES", "SCORE"
    );
    for chunk in &chunks {
        text += &format!(
            "{}  {:>6}  {:>9}  {:>6.2}  {:>9.4}{}\n",
            chunk.id,
            chunk.tokens,
            size(chunk.bytes),
            chunk.weight,
            chunk.score * 1e3,
            if chunk.pinned { "  pinned" } else { "" }
        );
    }
    text += "\nUses fade by half in a day. The score is the time that keeping a kilobyte is expected to save, in\n\
             milliseconds: the least goes first.\n";
    print(&text)
}

fn summary(chunk: &ChunkSummary) -> serde_json::Value {
    json!({
        "chunk": chunk.id.to_string(),
        "tokens": chunk.tokens,
        "bytes": chunk.bytes,
        "uses": chunk.weight,
        "score": chunk.score,
        "pinned": chunk.pinned,
    })
}

fn owners(store: &ChunkStore, is_json: bool) -> Outcome {
    let owners = store.owners().map_err(failure)?;
    if is_json {
        let rows: Vec<_> = owners
            .iter()
            .map(|owner| json!({ "owner": owner.owner.to_string(), "chunks": owner.chunks, "bytes": owner.bytes }))
            .collect();
        return print(&format!("{}\n", serde_json::to_string_pretty(&rows)?));
    }
    if owners.is_empty() {
        return print("nothing is kept\n");
    }
    let mut text = format!("{:>7}  {:>9}  OWNER\n", "CHUNKS", "SIZE");
    for owner in &owners {
        text += &format!(
            "{:>7}  {:>9}  {}\n",
            with_commas(owner.chunks),
            size(owner.bytes),
            in_a_line(&owner.owner.to_string())
        );
    }
    print(&text)
}

fn show(store: &ChunkStore, chunk: ChunkId, is_json: bool) -> Outcome {
    let record = store.record(chunk).map_err(failure)?;
    let owners: Vec<String> = record.owners.iter().map(Owner::to_string).collect();
    if is_json {
        let shards: Vec<_> = record
            .shards
            .iter()
            .map(|shard| json!({ "name": shard.name, "bytes": shard.bytes, "checksum": format!("{:016x}", shard.checksum) }))
            .collect();
        let row = json!({
            "chunk": record.id.to_string(),
            "tokens": record.tokens.len(),
            "position": record.base,
            "owners": owners,
            "exact": record.ratio >= 1.0,
            "recomputed_share": record.ratio,
            "bytes": record.bytes,
            "pinned": record.pinned,
            "made_ms": record.made_ms,
            "shards": shards,
        });
        return print(&format!("{}\n", serde_json::to_string_pretty(&row)?));
    }
    let how = match record.ratio >= 1.0 {
        true => "every token computed in its context".to_owned(),
        false => format!(
            "moved here, {:.0} % of the tokens computed again",
            record.ratio * 100.0
        ),
    };
    print(&format!(
        "chunk     {}\ntokens    {} from position {}\nowners    {}\nmade      {how}\nfile      {} in {}{}\n",
        record.id,
        record.tokens.len(),
        with_commas(record.base as usize),
        in_a_line(&owners.join(", ")),
        size(record.bytes),
        counted(record.shards.len(), "shard"),
        if record.pinned { "\npinned" } else { "" }
    ))
}

fn stats(store: &ChunkStore, is_json: bool) -> Outcome {
    let stats = store.stats().map_err(failure)?;
    if is_json {
        let row = json!({
            "chunks": stats.chunks,
            "tokens": stats.tokens,
            "bytes": stats.bytes,
            "pinned_chunks": stats.pinned_chunks,
            "pinned_bytes": stats.pinned_bytes,
            "owners": stats.owners,
            "models": stats.namespaces,
            "index_bytes": stats.index_bytes,
        });
        return print(&format!("{}\n", serde_json::to_string_pretty(&row)?));
    }
    print(&format!(
        "{} of {} owners and {}, {} tokens\n{} on disk, and {} for the index; {} pinned\n",
        counted(stats.chunks, "chunk"),
        with_commas(stats.owners),
        counted(stats.namespaces, "model"),
        with_commas(stats.tokens as usize),
        size(stats.bytes),
        size(stats.index_bytes),
        counted(stats.pinned_chunks, "chunk"),
    ))
}

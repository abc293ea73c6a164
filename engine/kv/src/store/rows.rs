//! Rows of the index: adding, reading, changing and deleting them. What belongs together is the caller's transaction;
//! every statement is prepared once.

use super::error::{During, StoreError};
use super::grams::fingerprints;
use super::policy::{Candidate, UseRecord};
use super::record::{
    ChainHash, ChunkId, ChunkRecord, Namespace, NewChunk, Owner, ShardRecord, content_hash, decode_tokens,
    encode_tokens,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

/// The row of a namespace.
pub(super) type Space = i64;

/// All rows of a question.
pub(super) fn all<T>(
    index: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    index.prepare_cached(sql)?.query_map(values, read)?.collect()
}

/// The first row of a question, if it has any.
pub(super) fn first<T>(
    index: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    index.prepare_cached(sql)?.query_row(values, read).optional()
}

/// Changes rows and says how many.
pub(super) fn change(index: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    index.prepare_cached(sql)?.execute(values)
}

/// The row of a namespace that holds chunks.
pub(super) fn space(index: &Connection, namespace: Namespace) -> rusqlite::Result<Option<Space>> {
    first(
        index,
        "SELECT id FROM space WHERE digest = ?1",
        [namespace.0],
        |row| row.get(0),
    )
}

/// The chunk with exactly this context and these tokens.
pub(super) fn same_chain(index: &Connection, chunk: &NewChunk<'_>) -> rusqlite::Result<Option<ChunkId>> {
    let Some(space) = space(index, chunk.namespace)? else {
        return Ok(None);
    };
    first(
        index,
        "SELECT chunk FROM tree WHERE space = ?1 AND parent = ?2 AND tokens = ?3",
        params![space, chunk.parent.0, encode_tokens(chunk.tokens)],
        |row| row.get(0).map(ChunkId),
    )
}

/// What a new row holds besides what the caller gave.
pub(super) struct Written<'a> {
    pub(super) id: ChunkId,
    pub(super) bytes: u64,
    pub(super) shards: &'a [ShardRecord],
    pub(super) now_ms: i64,
}

/// Adds all rows of a chunk. The chain must be new.
pub(super) fn insert(
    index: &Connection,
    chunk: &NewChunk<'_>,
    written: &Written<'_>,
) -> rusqlite::Result<()> {
    change(
        index,
        "INSERT OR IGNORE INTO space (digest) VALUES (?1)",
        [chunk.namespace.0],
    )?;
    let space: Space = index
        .prepare_cached("SELECT id FROM space WHERE digest = ?1")?
        .query_row([chunk.namespace.0], |row| row.get(0))?;
    let id = written.id.0;
    let tokens = encode_tokens(chunk.tokens);
    let uses = UseRecord::first(written.now_ms);
    change(
        index,
        "INSERT INTO chunk (id, space, parent, chain, content, base, count, ratio, made_ms, bytes, pinned, weight, used_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11, ?12)",
        params![
            id,
            space,
            chunk.parent.0,
            chunk.parent.then(chunk.tokens).0,
            content_hash(chunk.tokens) as i64,
            chunk.base,
            chunk.tokens.len() as i64,
            chunk.ratio,
            written.now_ms,
            written.bytes as i64,
            uses.weight,
            uses.at_ms,
        ],
    )?;
    change(
        index,
        "INSERT INTO text (chunk, tokens) VALUES (?1, ?2)",
        params![id, tokens],
    )?;
    change(
        index,
        "INSERT INTO tree (space, parent, tokens, chunk) VALUES (?1, ?2, ?3, ?4)",
        params![space, chunk.parent.0, tokens, id],
    )?;
    for gram in fingerprints(chunk.tokens) {
        change(
            index,
            "INSERT INTO gram (space, hash, chunk) VALUES (?1, ?2, ?3)",
            params![space, gram, id],
        )?;
    }
    for (place, shard) in written.shards.iter().enumerate() {
        change(
            index,
            "INSERT INTO shard (chunk, place, name, bytes, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                id,
                place as i64,
                shard.name,
                shard.bytes as i64,
                shard.checksum as i64
            ],
        )?;
    }
    add_owner(index, written.id, chunk.owner)
}

/// Makes `owner` one of the chunk's owners.
pub(super) fn add_owner(index: &Connection, chunk: ChunkId, owner: &Owner) -> rusqlite::Result<()> {
    change(
        index,
        "INSERT OR IGNORE INTO owner (kind, name) VALUES (?1, ?2)",
        [owner.kind(), owner.name()],
    )?;
    change(
        index,
        "INSERT OR IGNORE INTO holding (owner, chunk) SELECT id, ?3 FROM owner WHERE kind = ?1 AND name = ?2",
        params![owner.kind(), owner.name(), chunk.0],
    )?;
    Ok(())
}

/// Deletes all rows of a chunk and gives the bytes of its file; nothing when there is no such chunk. Owners and
/// namespaces that hold nothing more are deleted by [`delete_unused`].
pub(super) fn delete(index: &Connection, chunk: ChunkId) -> Result<Option<u64>, StoreError> {
    const ACTION: &str = "deleting a chunk";
    let id = chunk.0;
    let row = first(
        index,
        "SELECT space, parent, bytes FROM chunk WHERE id = ?1",
        [id],
        |row| {
            Ok((
                row.get::<_, Space>(0)?,
                row.get::<_, [u8; 32]>(1)?,
                row.get::<_, i64>(2)?,
            ))
        },
    )
    .during(ACTION)?;
    let Some((space, parent, bytes)) = row else {
        return Ok(None);
    };
    let stored: Option<Vec<u8>> = first(index, "SELECT tokens FROM text WHERE chunk = ?1", [id], |row| {
        row.get(0)
    })
    .during(ACTION)?;
    if let Some(stored) = stored {
        change(
            index,
            "DELETE FROM tree WHERE space = ?1 AND parent = ?2 AND tokens = ?3",
            params![space, parent, stored],
        )
        .during(ACTION)?;
        for gram in fingerprints(&decode_tokens(&stored)?) {
            change(
                index,
                "DELETE FROM gram WHERE space = ?1 AND hash = ?2 AND chunk = ?3",
                params![space, gram, id],
            )
            .during(ACTION)?;
        }
    }
    for statement in [
        "DELETE FROM text WHERE chunk = ?1",
        "DELETE FROM shard WHERE chunk = ?1",
        "DELETE FROM holding WHERE chunk = ?1",
        "DELETE FROM chunk WHERE id = ?1",
    ] {
        change(index, statement, [id]).during(ACTION)?;
    }
    Ok(Some(bytes.max(0) as u64))
}

/// Deletes the owners and namespaces without chunks.
pub(super) fn delete_unused(index: &Connection) -> rusqlite::Result<()> {
    change(
        index,
        "DELETE FROM owner WHERE NOT EXISTS (SELECT 1 FROM holding WHERE holding.owner = owner.id)",
        [],
    )?;
    change(
        index,
        "DELETE FROM space WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.space = space.id)",
        [],
    )?;
    Ok(())
}

/// The tokens of a chunk.
pub(super) fn tokens(index: &Connection, chunk: ChunkId) -> Result<Vec<u32>, StoreError> {
    first(
        index,
        "SELECT tokens FROM text WHERE chunk = ?1",
        [chunk.0],
        |row| Ok(decode_tokens(row.get_ref(0)?.as_blob()?)),
    )
    .during("reading the tokens of a chunk")?
    .ok_or(StoreError::NoSuchChunk(chunk))?
}

/// The owners of a chunk, in order of name.
pub(super) fn owners(index: &Connection, chunk: ChunkId) -> Result<Vec<Owner>, StoreError> {
    all(
        index,
        "SELECT kind, name FROM holding JOIN owner ON owner.id = holding.owner WHERE chunk = ?1 ORDER BY kind, name",
        [chunk.0],
        |row| Ok(Owner::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
    )
    .during("reading the owners of a chunk")?
    .into_iter()
    .collect()
}

/// Everything the index knows of a chunk.
pub(super) fn record(index: &Connection, chunk: ChunkId) -> Result<ChunkRecord, StoreError> {
    const ACTION: &str = "reading a chunk";
    let shards = all(
        index,
        "SELECT name, bytes, checksum FROM shard WHERE chunk = ?1 ORDER BY place",
        [chunk.0],
        |row| {
            Ok(ShardRecord {
                name: row.get(0)?,
                bytes: row.get::<_, i64>(1)?.max(0) as u64,
                checksum: row.get::<_, i64>(2)? as u64,
            })
        },
    )
    .during(ACTION)?;
    let record = first(
        index,
        "SELECT digest, parent, chain, content, base, ratio, made_ms, bytes, pinned, weight, used_ms
         FROM chunk JOIN space ON space.id = chunk.space WHERE chunk.id = ?1",
        [chunk.0],
        |row| {
            Ok(ChunkRecord {
                id: chunk,
                namespace: Namespace(row.get(0)?),
                parent: ChainHash(row.get(1)?),
                chain: ChainHash(row.get(2)?),
                content: row.get::<_, i64>(3)? as u64,
                base: row.get(4)?,
                tokens: Vec::new(),
                owners: Vec::new(),
                ratio: row.get(5)?,
                made_ms: row.get(6)?,
                bytes: row.get::<_, i64>(7)?.max(0) as u64,
                shards,
                pinned: row.get(8)?,
                uses: UseRecord {
                    weight: row.get(9)?,
                    at_ms: row.get(10)?,
                },
            })
        },
    )
    .during(ACTION)?
    .ok_or(StoreError::NoSuchChunk(chunk))?;
    Ok(ChunkRecord {
        tokens: tokens(index, chunk)?,
        owners: owners(index, chunk)?,
        ..record
    })
}

/// A place in the tree.
pub(super) type Node = (Space, [u8; 32]);

/// A chunk with its use record, as eviction wants it: the weight is still to be decayed.
pub(super) type Ranked = (ChunkId, UseRecord, Candidate<Node>);

/// All chunks, with use records as stored.
pub(super) fn candidates(index: &Connection) -> Result<Vec<Ranked>, StoreError> {
    all(
        index,
        "SELECT id, space, parent, chain, count, bytes, pinned, weight, used_ms FROM chunk ORDER BY id",
        [],
        |row| {
            let space = row.get(1)?;
            let uses = UseRecord {
                weight: row.get(7)?,
                at_ms: row.get(8)?,
            };
            let candidate = Candidate {
                parent: (space, row.get(2)?),
                node: (space, row.get(3)?),
                tokens: row.get::<_, u32>(4)? as usize,
                bytes: row.get::<_, i64>(5)?.max(0) as u64,
                weight: uses.weight,
                pinned: row.get(6)?,
            };
            Ok((ChunkId(row.get(0)?), uses, candidate))
        },
    )
    .during("reading all chunks")
}

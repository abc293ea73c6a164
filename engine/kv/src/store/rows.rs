//! Rows of the index: adding, reading, changing and deleting them. What belongs together is the caller's transaction;
//! every statement is prepared once.

use super::catalogue::Entry;
use super::error::{During, StoreError};
use super::policy::UseRecord;
use super::record::{
    ChainHash, ChunkId, ChunkRecord, Embedding, Namespace, Owner, ShardRecord, content_hash, decode_tokens,
    encode_tokens,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

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

/// What a new row holds besides what stands in the catalogue.
pub(super) struct Written<'a> {
    pub(super) id: ChunkId,
    pub(super) bytes: u64,
    pub(super) shards: &'a [ShardRecord],
    /// The tensors of a chunk that gets no file.
    pub(super) small: Option<&'a [u8]>,
    pub(super) owners: &'a [Owner],
    pub(super) now_ms: i64,
}

/// Adds all rows of a chunk. The chain must be new.
pub(super) fn insert(index: &Connection, entry: &Entry, written: &Written<'_>) -> rusqlite::Result<()> {
    change(
        index,
        "INSERT OR IGNORE INTO space (digest) VALUES (?1)",
        [entry.namespace.0],
    )?;
    let space: i64 = index
        .prepare_cached("SELECT id FROM space WHERE digest = ?1")?
        .query_row([entry.namespace.0], |row| row.get(0))?;
    let id = written.id.0;
    change(
        index,
        "INSERT INTO chunk (id, space, parent, chain, base, count, ratio, made_ms, bytes, pinned, weight, used_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, ?11)",
        params![
            id,
            space,
            entry.parent.0,
            entry.chain.0,
            entry.base,
            entry.tokens.len() as i64,
            entry.ratio,
            written.now_ms,
            written.bytes as i64,
            entry.uses.weight,
            entry.uses.at_ms,
        ],
    )?;
    change(
        index,
        "INSERT INTO text (chunk, tokens, embedding) VALUES (?1, ?2, ?3)",
        params![
            id,
            encode_tokens(&entry.tokens),
            entry.embedding.as_ref().map(Embedding::encode)
        ],
    )?;
    if let Some(tensors) = written.small {
        change(
            index,
            "INSERT INTO small (chunk, tensors) VALUES (?1, ?2)",
            params![id, tensors],
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
    for owner in written.owners {
        add_owner(index, written.id, owner)?;
    }
    Ok(())
}

/// Makes `owner` one of the chunk's owners, if there is such a chunk.
pub(super) fn add_owner(index: &Connection, chunk: ChunkId, owner: &Owner) -> rusqlite::Result<()> {
    change(
        index,
        "INSERT OR IGNORE INTO owner (kind, name) VALUES (?1, ?2)",
        [owner.kind(), owner.name()],
    )?;
    change(
        index,
        "INSERT OR IGNORE INTO holding (owner, chunk) SELECT id, ?3 FROM owner
         WHERE kind = ?1 AND name = ?2 AND EXISTS (SELECT 1 FROM chunk WHERE chunk.id = ?3)",
        params![owner.kind(), owner.name(), chunk.0],
    )?;
    Ok(())
}

/// Deletes all rows of a chunk and gives the bytes of its file; nothing when there is no such chunk. Owners and
/// namespaces that hold nothing more are deleted by [`delete_unused`].
pub(super) fn delete(index: &Connection, chunk: ChunkId) -> Result<Option<u64>, StoreError> {
    const ACTION: &str = "deleting a chunk";
    let id = chunk.0;
    let Some(bytes) = first(index, "SELECT bytes FROM chunk WHERE id = ?1", [id], |row| {
        row.get::<_, i64>(0)
    })
    .during(ACTION)?
    else {
        return Ok(None);
    };
    for statement in [
        "DELETE FROM text WHERE chunk = ?1",
        "DELETE FROM small WHERE chunk = ?1",
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

/// The tensors of a chunk, in order.
pub(super) fn shards(index: &Connection, chunk: ChunkId) -> Result<Vec<ShardRecord>, StoreError> {
    all(
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
    .during("reading a chunk")
}

/// Everything the index knows of a chunk.
pub(super) fn record(index: &Connection, chunk: ChunkId) -> Result<ChunkRecord, StoreError> {
    const ACTION: &str = "reading a chunk";
    let shards = shards(index, chunk)?;
    let record = first(
        index,
        "SELECT digest, parent, chain, base, ratio, made_ms, bytes, pinned, weight, used_ms
         FROM chunk JOIN space ON space.id = chunk.space WHERE chunk.id = ?1",
        [chunk.0],
        |row| {
            Ok(ChunkRecord {
                id: chunk,
                namespace: Namespace(row.get(0)?),
                parent: ChainHash(row.get(1)?),
                chain: ChainHash(row.get(2)?),
                content: 0,
                base: row.get(3)?,
                tokens: Vec::new(),
                owners: Vec::new(),
                ratio: row.get(4)?,
                made_ms: row.get(5)?,
                bytes: row.get::<_, i64>(6)?.max(0) as u64,
                shards,
                pinned: row.get(7)?,
                uses: UseRecord {
                    weight: row.get(8)?,
                    at_ms: row.get(9)?,
                },
            })
        },
    )
    .during(ACTION)?
    .ok_or(StoreError::NoSuchChunk(chunk))?;
    let tokens = tokens(index, chunk)?;
    Ok(ChunkRecord {
        content: content_hash(&tokens),
        tokens,
        owners: owners(index, chunk)?,
        ..record
    })
}

/// The tensors of a chunk that has no file; nothing of one that has.
pub(super) fn small(index: &Connection, chunk: ChunkId) -> Result<Option<Vec<u8>>, StoreError> {
    first(
        index,
        "SELECT tensors FROM small WHERE chunk = ?1",
        [chunk.0],
        |row| row.get(0),
    )
    .during("reading a chunk")
}

/// All chunks, for the catalogue.
pub(super) fn entries(index: &Connection) -> Result<Vec<(ChunkId, Entry)>, StoreError> {
    let rows = all(
        index,
        "SELECT chunk.id, digest, parent, chain, base, ratio, bytes, pinned, weight, used_ms, tokens, embedding
         FROM chunk JOIN space ON space.id = chunk.space JOIN text ON text.chunk = chunk.id ORDER BY chunk.id",
        [],
        |row| {
            let tokens = decode_tokens(row.get_ref(10)?.as_blob()?);
            let embedding = row.get_ref(11)?.as_blob_or_null()?;
            let embedding = embedding.map(Embedding::decode);
            let chunk = ChunkId(row.get(0)?);
            let (namespace, parent, chain) = (row.get(1)?, row.get(2)?, row.get(3)?);
            let (base, ratio, bytes) = (row.get(4)?, row.get(5)?, row.get::<_, i64>(6)?);
            let pinned = row.get(7)?;
            let uses = UseRecord {
                weight: row.get(8)?,
                at_ms: row.get(9)?,
            };
            Ok(tokens.map(|tokens| {
                let entry = Entry {
                    namespace: Namespace(namespace),
                    parent: ChainHash(parent),
                    chain: ChainHash(chain),
                    base,
                    tokens: tokens.into(),
                    embedding,
                    ratio,
                    bytes: bytes.max(0) as u64,
                    pinned,
                    uses,
                    pending: None,
                };
                (chunk, entry)
            }))
        },
    );
    rows.during("reading all chunks")?.into_iter().collect()
}

//! A chunk's file: written in one pass to a temporary name, and read back shard by shard against what was written.
//!
//! The header follows from the chunk's record alone. So reading parses nothing: a file whose header is not byte for
//! byte the expected one is not this chunk's file.

use super::error::StoreError;
use super::record::{ChainHash, ChunkId, Namespace, Shard, ShardRecord, hex};
use super::schema::VERSION;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const FINISHED: &str = "safetensors";
const UNFINISHED: &str = "part";
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// Where a chunk's file is.
pub(super) fn path(folder: &Path, chunk: ChunkId) -> PathBuf {
    folder.join(format!("{chunk}.{FINISHED}"))
}

/// A file that the store made, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Finished(ChunkId),
    Unfinished(ChunkId),
}

/// What a file name says; nothing for names that the store never gives, so that it never touches files of others.
pub(super) fn kind(path: &Path) -> Option<Kind> {
    let stem = path.file_stem()?.to_str()?;
    let digits = stem.len() == 16 && stem.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let chunk = ChunkId(i64::from_str_radix(stem, 16).ok().filter(|_| digits)?);
    match path.extension()?.to_str()? {
        FINISHED => Some(Kind::Finished(chunk)),
        UNFINISHED => Some(Kind::Unfinished(chunk)),
        _ => None,
    }
}

/// What stands before the first tensor: the length of the header and the header.
pub(super) fn preamble<'a>(
    namespace: Namespace,
    chain: ChainHash,
    shards: impl Iterator<Item = (&'a str, u64)>,
) -> Vec<u8> {
    let mut header = format!(
        r#"{{"__metadata__":{{"format":"reprise-chunk","version":"{VERSION}","namespace":"{}","chain":"{}"}}"#,
        hex(&namespace.0),
        hex(&chain.0)
    );
    let mut start = 0_u64;
    for (name, bytes) in shards {
        // Only a damaged index has sizes that overflow: their header is then no file's.
        let end = start.saturating_add(bytes);
        // Names are plain: nothing to escape. Writing to a string cannot fail.
        let _ = write!(
            header,
            r#","{name}":{{"dtype":"U8","shape":[{bytes}],"data_offsets":[{start},{end}]}}"#
        );
        start = end;
    }
    header.push('}');
    // Tensors begin at a multiple of eight.
    header.extend(std::iter::repeat_n(
        ' ',
        header.len().next_multiple_of(8) - header.len(),
    ));
    let mut preamble = (header.len() as u64).to_le_bytes().to_vec();
    preamble.extend(header.into_bytes());
    preamble
}

/// A file that is written under its temporary name, and not synced yet.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    file: File,
    chunk: ChunkId,
}

/// Writes a chunk's file under its temporary name. Gives the checksum of each shard. When it fails there is no file.
pub(super) fn write(
    folder: &Path,
    chunk: ChunkId,
    preamble: &[u8],
    shards: Vec<Shard<'_>>,
) -> Result<(Unfinished, Vec<ShardRecord>), StoreError> {
    let path = folder.join(format!("{chunk}.{UNFINISHED}"));
    match write_unfinished(&path, preamble, shards) {
        Ok((file, records)) => Ok((Unfinished { path, file, chunk }, records)),
        Err(error) => {
            // What cannot be removed now is removed when the store is opened next.
            let _ = fs::remove_file(&path);
            Err(error)
        }
    }
}

/// Makes files last, with their final names. When it fails, some may have those and some not: [`discard`] them.
pub(super) fn publish(folder: &Path, files: &[&Unfinished]) -> Result<(), StoreError> {
    if files.is_empty() {
        return Ok(());
    }
    for Unfinished { path, file, .. } in files {
        file.sync_all().map_err(StoreError::file("sync", path))?;
    }
    for file in files {
        fs::rename(&file.path, path(folder, file.chunk)).map_err(StoreError::file("rename", &file.path))?;
    }
    sync_folder(folder)
}

/// Removes a file, whichever name it has.
pub(super) fn discard(folder: &Path, file: &Unfinished) {
    // What cannot be removed now is removed when the store is opened next.
    let _ = fs::remove_file(&file.path);
    let _ = fs::remove_file(path(folder, file.chunk));
}

/// Removes what was written of a file when its writing broke off.
pub(super) fn discard_unfinished(folder: &Path, chunk: ChunkId) {
    let _ = fs::remove_file(folder.join(format!("{chunk}.{UNFINISHED}")));
}

/// Gathers shards in memory, with the checksum of each.
pub(super) fn gather(shards: Vec<Shard<'_>>) -> Result<(Vec<u8>, Vec<ShardRecord>), StoreError> {
    let mut bytes = Vec::new();
    let records = write_shards(&mut bytes, Path::new("memory"), shards)?;
    Ok((bytes, records))
}

fn write_unfinished(
    path: &Path,
    preamble: &[u8],
    shards: Vec<Shard<'_>>,
) -> Result<(File, Vec<ShardRecord>), StoreError> {
    let file = File::create_new(path).map_err(StoreError::file("create", path))?;
    let mut writer = BufWriter::with_capacity(WRITE_BUFFER_BYTES, file);
    writer
        .write_all(preamble)
        .map_err(StoreError::file("write", path))?;
    let records = write_shards(&mut writer, path, shards)?;
    let file = writer
        .into_inner()
        .map_err(|error| StoreError::file("write", path)(error.into_error()))?;
    Ok((file, records))
}

fn write_shards(
    writer: &mut impl Write,
    path: &Path,
    shards: Vec<Shard<'_>>,
) -> Result<Vec<ShardRecord>, StoreError> {
    let mut records = Vec::with_capacity(shards.len());
    for shard in shards {
        let (mut hash, mut given) = (Xxh3::new(), 0);
        for part in shard.parts {
            given += part.len() as u64;
            if given > shard.bytes {
                break;
            }
            hash.update(part);
            writer.write_all(part).map_err(StoreError::file("write", path))?;
        }
        if given != shard.bytes {
            return Err(StoreError::Invalid(format!(
                "shard {:?} was to have {} bytes, its parts have {}{given}",
                shard.name,
                shard.bytes,
                if given > shard.bytes { "at least " } else { "" }
            )));
        }
        records.push(ShardRecord {
            name: shard.name.to_owned(),
            bytes: shard.bytes,
            checksum: hash.digest(),
        });
    }
    Ok(records)
}

/// Makes new names in a folder last. Elsewhere than on Unix folders cannot be synced, and need not be.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(StoreError::file("sync", folder))
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// Why a file could not be read.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is not what was written.
    Damaged(String),
    /// The system said no. It may say yes another time.
    Failed(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::NotFound => Fault::Damaged("is missing".to_owned()),
            io::ErrorKind::UnexpectedEof => Fault::Damaged("is cut short".to_owned()),
            _ => Fault::Failed(error),
        }
    }
}

/// Opens a chunk's file, which must have so many bytes and begin like this.
pub(super) fn open(path: &Path, bytes: u64, preamble: &[u8]) -> Result<File, Fault> {
    let mut file = File::open(path)?;
    let found = file.metadata()?.len();
    if found != bytes {
        return Err(Fault::Damaged(format!("has {found} bytes, {bytes} were written")));
    }
    let mut begin = vec![0; preamble.len()];
    file.read_exact(&mut begin)?;
    if begin != preamble {
        return Err(Fault::Damaged("has the header of another file".to_owned()));
    }
    Ok(file)
}

/// Reads a shard that begins at `start`, into `bytes` from its start.
pub(super) fn read(
    file: &mut File,
    start: u64,
    shard: &ShardRecord,
    bytes: &mut Vec<u8>,
) -> Result<(), Fault> {
    bytes.clear();
    file.seek(SeekFrom::Start(start))?;
    let wanted = usize::try_from(shard.bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    bytes
        .try_reserve_exact(wanted)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    file.take(shard.bytes).read_to_end(bytes)?;
    if bytes.len() != wanted {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    check(shard, bytes)
}

/// Copies a shard out of the tensors of a chunk without a file.
pub(super) fn copy(
    tensors: &[u8],
    start: u64,
    shard: &ShardRecord,
    bytes: &mut Vec<u8>,
) -> Result<(), Fault> {
    let end = start.saturating_add(shard.bytes);
    let range = usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
    let shard_bytes = tensors.get(range);
    bytes.clear();
    bytes.extend_from_slice(
        shard_bytes.ok_or_else(|| Fault::Damaged("is cut short in the index".to_owned()))?,
    );
    check(shard, bytes)
}

fn check(shard: &ShardRecord, bytes: &[u8]) -> Result<(), Fault> {
    if xxh3_64(bytes) != shard.checksum {
        return Err(Fault::Damaged(format!(
            "has other bytes in shard {:?} than were written",
            shard.name
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_store_are_its_files() {
        assert_eq!(
            kind(Path::new("/x/00000000000000ff.safetensors")),
            Some(Kind::Finished(ChunkId(255)))
        );
        assert_eq!(
            kind(Path::new("00000000000000ff.part")),
            Some(Kind::Unfinished(ChunkId(255)))
        );
        for other in [
            "model.safetensors",
            "00000000000000FF.part",
            "ff.part",
            "+0000000000000ff.part",
            "x",
        ] {
            assert_eq!(kind(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn the_file_is_a_safetensors_file() {
        let shards = [("layers.0-3", 5_u64), ("layers.4-7", 3)];
        let mut file = preamble(Namespace([1; 32]), ChainHash([2; 32]), shards.into_iter());
        assert!(file.len().is_multiple_of(8));
        file.extend(*b"hello...");
        let tensors = safetensors::SafeTensors::deserialize(&file).unwrap();
        assert_eq!(tensors.tensor("layers.0-3").unwrap().data(), b"hello");
        assert_eq!(tensors.tensor("layers.4-7").unwrap().data(), b"...");
        let (_, metadata) = safetensors::SafeTensors::read_metadata(&file).unwrap();
        let metadata = metadata.metadata().clone().unwrap();
        assert_eq!(metadata["format"], "reprise-chunk");
        assert_eq!(metadata["chain"], "02".repeat(32));
    }
}

//! Where a model file's bytes live: a read-only mapping of the file, or a buffer for tests. Advice to the system is
//! best effort: a system that does not take it only costs speed or memory, never correctness.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use super::GgufError;

#[derive(Debug)]
pub(super) enum Storage {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Storage {
    /// Maps `path` read-only. An empty file, a folder or a missing file is an error of its own.
    pub(super) fn map(path: &Path) -> Result<Storage, GgufError> {
        let io = |source: std::io::Error| match source.kind() {
            ErrorKind::NotFound => GgufError::NotFound {
                path: path.to_path_buf(),
            },
            _ => GgufError::Io {
                path: path.to_path_buf(),
                source,
            },
        };
        let facts = std::fs::metadata(path).map_err(io)?;
        if facts.is_dir() {
            return Err(GgufError::Directory {
                path: path.to_path_buf(),
            });
        }
        if !facts.is_file() {
            return Err(GgufError::NotAFile {
                path: path.to_path_buf(),
            });
        }
        if facts.len() == 0 {
            return Err(GgufError::Empty {
                path: path.to_path_buf(),
            });
        }
        let file = File::open(path).map_err(io)?;
        // SAFETY: the mapping is read-only and private to this process. The one hazard left is another program
        // cutting or rewriting the file while it is mapped; model files are written once (downloads go to a temporary
        // name first), and metadata is copied out, so such a change can at worst alter weights or end the process.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        Ok(Storage::Mapped(map))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Mapped(map) => map,
            Storage::Owned(bytes) => bytes,
        }
    }

    /// Lets the pages of `range` leave resident memory.
    pub(super) fn release(&self, range: Range<u64>) {
        #[cfg(unix)]
        if let Some((map, start, len)) = self.mapped_part(range) {
            // SAFETY: the mapping is read-only and backed by the file, so a dropped page is read from the file again
            // on its next use: no value that anyone can observe through `bytes` changes. The range lies inside it.
            let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len) };
        }
        #[cfg(not(unix))]
        let _ = range;
    }

    /// Asks for the pages of `range` ahead of their use.
    pub(super) fn will_need(&self, range: Range<u64>) {
        #[cfg(unix)]
        if let Some((map, start, len)) = self.mapped_part(range) {
            let _ = map.advise_range(memmap2::Advice::WillNeed, start, len);
        }
        #[cfg(not(unix))]
        let _ = range;
    }

    /// Announces one pass from front to back.
    pub(super) fn sequential(&self) {
        #[cfg(unix)]
        if let Storage::Mapped(map) = self {
            let _ = map.advise(memmap2::Advice::Sequential);
        }
    }

    #[cfg(unix)]
    fn mapped_part(&self, range: Range<u64>) -> Option<(&Mmap, usize, usize)> {
        let Storage::Mapped(map) = self else { return None };
        let start = usize::try_from(range.start).ok()?.min(map.len());
        let end = usize::try_from(range.end).ok()?.min(map.len());
        (start < end).then_some((map, start, end - start))
    }
}

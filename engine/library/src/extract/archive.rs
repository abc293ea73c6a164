//! Zip archives, which Office files and e-books are. An archive is hostile until checked: how many entries it has and how much it
//! unpacks to is bounded by counting what really comes out, whatever the archive says; nothing of it is ever written to a path.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::text;
use crate::error::Fault;

/// More entries are refused.
const ENTRIES: usize = 20_000;
/// One entry may unpack to this.
const ENTRY_BYTES: u64 = 128 << 20;
/// All that is read of one archive may unpack to this.
const ALL_BYTES: u64 = 512 << 20;

/// An open archive.
pub(super) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    kind: &'static str,
    left_bytes: u64,
}

impl<'a> Archive<'a> {
    /// Opens an archive that should be of this kind ("a Word document").
    pub(super) fn open(bytes: &'a [u8], kind: &'static str) -> Result<Archive<'a>, Fault> {
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(kind, error.to_string()))?;
        if zip.len() > ENTRIES {
            return Err(broken(kind, format!("it has more than {ENTRIES} parts")));
        }
        Ok(Archive {
            zip,
            kind,
            left_bytes: ALL_BYTES,
        })
    }

    /// Whether there is an entry of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// An entry's bytes; `None` when there is none of this name.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        let kind = self.kind;
        let limit = ENTRY_BYTES.min(self.left_bytes);
        let entry = match self.zip.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(Fault::PasswordNeeded);
            }
            Err(error) => return Err(broken(kind, format!("{name}: {error}"))),
        };
        let mut bytes = Vec::new();
        entry
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| broken(kind, format!("{name}: {error}")))?;
        if bytes.len() as u64 > limit {
            return Err(Fault::UnpacksTooLarge {
                limit_mib: limit >> 20,
            });
        }
        self.left_bytes -= bytes.len() as u64;
        Ok(Some(bytes))
    }

    /// An entry as text; `None` when there is none of this name.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Fault> {
        let Some(bytes) = self.bytes(name)? else {
            return Ok(None);
        };
        match text::decode(&bytes) {
            Some(decoded) => Ok(Some(decoded.text)),
            None if bytes.is_empty() => Ok(Some(String::new())),
            None => Err(self.broken(&format!("{name} is not text"))),
        }
    }

    /// An entry that must be there, as text.
    pub(super) fn needed_text(&mut self, name: &str) -> Result<String, Fault> {
        self.text(name)?
            .ok_or_else(|| self.broken(&format!("its part {name} is missing")))
    }

    /// Unpacks everything once and keeps nothing, so that a reader that trusts the archive may have it.
    pub(super) fn measure(&mut self) -> Result<(), Fault> {
        for index in 0..self.zip.len() {
            let kind = self.kind;
            let limit = ENTRY_BYTES.min(self.left_bytes);
            let entry = self
                .zip
                .by_index(index)
                .map_err(|error| broken(kind, error.to_string()))?;
            let unpacked = std::io::copy(&mut entry.take(limit + 1), &mut std::io::sink())
                .map_err(|error| broken(kind, error.to_string()))?;
            if unpacked > limit {
                return Err(Fault::UnpacksTooLarge {
                    limit_mib: limit >> 20,
                });
            }
            self.left_bytes -= unpacked;
        }
        Ok(())
    }

    /// The error for an archive that is not what it should be.
    pub(super) fn broken(&self, why: &str) -> Fault {
        broken(self.kind, why.into())
    }
}

fn broken(kind: &str, why: String) -> Fault {
    Fault::Broken {
        kind: kind.into(),
        why,
    }
}

/// The entry that a relative target in another entry means; never outside the archive.
pub(super) fn resolved(base: &str, target: &str) -> String {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => base
            .rsplit_once('/')
            .map(|(folder, _)| folder.split('/').collect())
            .unwrap_or_default(),
    };
    let target = target.split(['#', '?']).next().unwrap_or_default();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    /// An archive with these entries.
    pub(crate) fn packed(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn a_zip_bomb_is_refused_while_it_unpacks() {
        let zeros = vec![0; (ENTRY_BYTES + 2) as usize];
        let bomb = packed(&[("word/document.xml", &zeros)]);
        assert!(bomb.len() < 1 << 20);
        let mut archive = Archive::open(&bomb, "a test").unwrap();
        let expected = Fault::UnpacksTooLarge { limit_mib: 128 };
        assert_eq!(archive.bytes("word/document.xml").unwrap_err(), expected);
        assert_eq!(archive.measure().unwrap_err(), expected);
    }

    #[test]
    fn an_archive_of_too_many_parts_is_refused() {
        let names: Vec<String> = (0..=ENTRIES).map(|n| n.to_string()).collect();
        let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        let refused = Archive::open(&packed(&entries), "a test").err().unwrap();
        assert!(refused.to_string().contains("more than 20000 parts"), "{refused}");
    }

    #[test]
    fn targets_never_leave_the_archive() {
        assert_eq!(
            resolved("ppt/slides/slide1.xml", "../media/a.png"),
            "ppt/media/a.png"
        );
        assert_eq!(resolved("ppt/presentation.xml", "/docs/a.xml#x"), "docs/a.xml");
        assert_eq!(resolved("a.opf", "../../../etc/passwd"), "etc/passwd");
    }
}

//! Containers of old Office files (OLE): a new Office file inside one is encrypted, and is opened with its password; the old
//! formats themselves are named and not read.

use std::io::Cursor;

use cfb::CompoundFile;

use super::guard::Watch;
use crate::error::Fault;

/// What old Office files and the containers of encrypted ones begin with.
pub(super) const SIGNATURE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// New Office files are zip archives.
const ZIP: &[u8] = b"PK\x03\x04";

/// The Office file inside of an encrypted container.
pub(super) fn decrypted(bytes: &[u8], watch: &Watch) -> Result<Vec<u8>, Fault> {
    let broken = |why: String| Fault::Broken {
        kind: "an Office file".into(),
        why,
    };
    let container = CompoundFile::open(Cursor::new(bytes)).map_err(|error| broken(error.to_string()))?;
    if !container.exists("/EncryptedPackage") {
        return Err(Fault::UnknownKind {
            kind: old_kind(&container).into(),
        });
    }
    let Some(password) = watch.password() else {
        return Err(Fault::PasswordNeeded);
    };
    // A wrong password is not told by the library: what comes out is noise then.
    match office_crypto::decrypt_from_bytes(bytes.to_vec(), password) {
        Ok(file) if file.starts_with(ZIP) => Ok(file),
        Ok(_) => Err(Fault::WrongPassword),
        Err(error) => Err(broken(error.to_string())),
    }
}

fn old_kind(container: &CompoundFile<Cursor<&[u8]>>) -> &'static str {
    const KINDS: &[(&str, &str)] = &[
        ("/WordDocument", "an old Word document (save it as docx)"),
        ("/Workbook", "an old Excel workbook (save it as xlsx)"),
        ("/Book", "an old Excel workbook (save it as xlsx)"),
        (
            "/PowerPoint Document",
            "an old PowerPoint presentation (save it as pptx)",
        ),
        ("/__properties_version1.0", "an Outlook message (save it as eml)"),
    ];
    KINDS
        .iter()
        .find(|(stream, _)| container.exists(stream))
        .map_or("an old Office document", |(_, kind)| kind)
}

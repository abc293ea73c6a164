//! Folders: names for groups of chats, one level deep.

use rusqlite::{Connection, ErrorCode, Transaction, params};

use super::error::{StoreError, Trouble};
use super::types::{Folder, FolderId};
use super::{ChatStore, storable, title};

/// Longest name of a folder, in characters.
const LONGEST_NAME: usize = 80;

impl ChatStore {
    /// Adds a folder. Its name is trimmed and must be a new one.
    pub fn add_folder(&self, name: &str) -> Result<Folder, StoreError> {
        let name = checked_name(name)?;
        self.write(|transaction| {
            let added = transaction.execute("INSERT INTO folders (name) VALUES (?1)", [&name]);
            unique(added, &name)?;
            Ok(Folder {
                id: FolderId(transaction.last_insert_rowid()),
                name: name.clone(),
            })
        })
    }

    /// The folder of this name, which is made where there is none.
    pub fn folder_called(&self, name: &str) -> Result<Folder, StoreError> {
        let name = checked_name(name)?;
        self.write(|transaction| {
            transaction.execute(
                "INSERT INTO folders (name) VALUES (?1) ON CONFLICT DO NOTHING",
                [&name],
            )?;
            let id = transaction.query_row("SELECT id FROM folders WHERE name = ?1", [&name], |row| {
                row.get(0)
            })?;
            Ok(Folder {
                id: FolderId(id),
                name: name.clone(),
            })
        })
    }

    /// Gives a folder another name.
    pub fn rename_folder(&self, folder: FolderId, name: &str) -> Result<Folder, StoreError> {
        let name = checked_name(name)?;
        self.write(|transaction| {
            require(transaction, folder)?;
            let renamed = transaction.execute(
                "UPDATE folders SET name = ?2 WHERE id = ?1",
                params![folder, name],
            );
            unique(renamed, &name)?;
            Ok(Folder {
                id: folder,
                name: name.clone(),
            })
        })
    }

    /// Removes a folder; its chats stay, outside of any.
    pub fn remove_folder(&self, folder: FolderId) -> Result<(), StoreError> {
        self.write(|transaction| {
            require(transaction, folder)?;
            transaction.execute("DELETE FROM folders WHERE id = ?1", [folder])?;
            Ok(())
        })
    }
}

/// All folders by name, without regard to case.
pub(super) fn load(connection: &Connection) -> rusqlite::Result<Vec<Folder>> {
    let mut folders: Vec<Folder> = connection
        .prepare_cached("SELECT id, name FROM folders ORDER BY id")?
        .query_map([], |row| {
            Ok(Folder {
                id: row.get(0)?,
                name: row.get(1)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    folders.sort_by_cached_key(|folder| folder.name.to_lowercase());
    Ok(folders)
}

/// An error if there is no such folder.
pub(super) fn require(transaction: &Transaction<'_>, folder: FolderId) -> Result<(), Trouble> {
    if transaction
        .prepare_cached("SELECT 1 FROM folders WHERE id = ?1")?
        .exists([folder])?
    {
        Ok(())
    } else {
        Err(StoreError::Missing {
            what: "folder",
            id: folder.0,
        }
        .into())
    }
}

fn checked_name(name: &str) -> Result<String, StoreError> {
    let name = title::one_line(&storable(name));
    match name.chars().count() {
        0 => Err(StoreError::refused(
            "a folder's name cannot be empty; type at least one character",
        )),
        1..=LONGEST_NAME => Ok(name),
        _ => Err(StoreError::refused(format!(
            "a folder's name has at most {LONGEST_NAME} characters; type a shorter one"
        ))),
    }
}

fn unique(result: rusqlite::Result<usize>, name: &str) -> Result<(), Trouble> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(StoreError::refused(format!(
                "there is a folder named “{name}” already; choose another name"
            ))
            .into())
        }
        Err(error) => Err(error.into()),
    }
}

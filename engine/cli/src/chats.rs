//! `reprise export` and `reprise import`: the window's chats as files, to be read, kept and taken to another machine.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use reprise_library::chats::{ChatStore, ChatSummary, ExportFormat, FolderId, StoreError};
use reprise_library::files::{in_a_line, stem_of, write_whole};
use reprise_library::folders::{self, shown};
use reprise_library::system_words;

use crate::failure::{Failure, Outcome};
use crate::output::{counted, note, print};

#[derive(Debug, Args)]
#[command(after_help = "\
Markdown has the branch of a chat that is shown; JSON has all of it, and can be imported again. Without
--chat all chats are written, each to a file of its own, in folders as in the window.

Examples:
  reprise export chats-2026
  reprise export garden.md --chat \"The garden\"
  reprise export garden.json --chat 12")]
pub struct ExportArguments {
    /// A folder for all chats, which must be empty or not there yet; with --chat a file
    path: PathBuf,
    /// One chat: its title or number
    #[arg(long, value_name = "CHAT")]
    chat: Option<String>,
    /// How they are written [default: json; with --chat as the file's ending says]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// To be read
    Markdown,
    /// To be imported again
    Json,
}

impl Format {
    fn of_file(path: &Path) -> Outcome<Format> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("md" | "markdown") => Ok(Format::Markdown),
            Some("json") => Ok(Format::Json),
            _ => Err(Failure::Usage(format!(
                "{} ends neither in .md nor in .json; name it so, or say --format",
                path.display()
            ))),
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Format::Markdown => "md",
            Format::Json => "json",
        }
    }
}

impl From<Format> for ExportFormat {
    fn from(format: Format) -> ExportFormat {
        match format {
            Format::Markdown => ExportFormat::Markdown,
            Format::Json => ExportFormat::Json,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
What cannot be read is said, and the rest is imported. Importing a chat twice gives two chats.

Examples:
  reprise import garden.json
  reprise import chats-2026")]
pub struct ImportArguments {
    /// Exported chats as JSON, and folders of them: a folder in a folder becomes a folder of chats
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// The window's chats; the lock keeps the window from opening them meanwhile.
pub fn open() -> Outcome<(ChatStore, File)> {
    let data = folders::data()?;
    let lock = folders::lock(&data)?;
    let (store, notices) = ChatStore::open(folders::chats_in(&data))?;
    for notice in notices {
        note(&format!("note: {notice}"));
    }
    Ok((store, lock))
}

pub fn export(arguments: &ExportArguments) -> Outcome {
    let (store, _lock) = open()?;
    let ExportArguments { path, chat, format } = arguments;
    match chat {
        Some(wanted) => export_one(&store, path, wanted, *format),
        None => export_all(&store, path, format.unwrap_or(Format::Json)),
    }
}

fn export_one(store: &ChatStore, path: &Path, wanted: &str, format: Option<Format>) -> Outcome {
    let format = match format {
        Some(format) => format,
        None => Format::of_file(path)?,
    };
    let chats = store.list()?.chats;
    let chat = named(&chats, wanted)?;
    if path.exists() {
        return Err(Failure::message(format!(
            "{} is there already; choose another name",
            path.display()
        )));
    }
    write(path, &store.export(chat.id, format.into())?)?;
    print(&format!("{}\n", path.display()))
}

/// The chat with this title or number.
pub fn named<'a>(chats: &'a [ChatSummary], wanted: &str) -> Outcome<&'a ChatSummary> {
    let is_meant = |chat: &&ChatSummary| {
        chat.id.to_string() == wanted || chat.title.as_deref().is_some_and(|title| title == wanted)
    };
    let mut found = chats.iter().filter(is_meant);
    match (found.next(), found.next()) {
        (Some(chat), None) => Ok(chat),
        (Some(first), Some(second)) => Err(Failure::message(format!(
            "several chats are called {wanted:?}; say which by its number, such as {} or {}",
            first.id, second.id
        ))),
        (None, _) => {
            let titles: Vec<String> = chats
                .iter()
                .map(|chat| {
                    format!(
                        "\n  {}  {}",
                        chat.id,
                        in_a_line(chat.title.as_deref().unwrap_or("Untitled chat"))
                    )
                })
                .collect();
            Err(Failure::message(format!(
                "no chat is called {wanted:?}; there are:{}",
                if titles.is_empty() {
                    " none".into()
                } else {
                    titles.concat()
                }
            )))
        }
    }
}

fn export_all(store: &ChatStore, path: &Path, format: Format) -> Outcome {
    let is_taken = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    };
    if is_taken {
        return Err(Failure::message(format!(
            "{} is not an empty folder; choose another place",
            path.display()
        )));
    }
    let list = store.list()?;
    let mut folder_of: HashMap<FolderId, PathBuf> = HashMap::new();
    let mut taken = Vec::new();
    make(path)?;
    for folder in &list.folders {
        let at = free(path, &stem_of(&folder.name), "", &mut taken);
        make(&at)?;
        folder_of.insert(folder.id, at);
    }
    let mut written = 0;
    for chat in &list.chats {
        // One with nothing but a draft.
        if store.chat(chat.id)?.turns.is_empty() {
            continue;
        }
        written += 1;
        let folder = chat
            .folder
            .and_then(|id| folder_of.get(&id))
            .map_or(path, PathBuf::as_path);
        let stem = stem_of(chat.title.as_deref().unwrap_or("Untitled chat"));
        let file = free(folder, &stem, format.ending(), &mut taken);
        write(&file, &store.export(chat.id, format.into())?)?;
    }
    print(&format!("{} in {}\n", counted(written, "chat"), path.display()))
}

/// A name in a folder that nothing has yet, whatever the case of its letters.
fn free(folder: &Path, stem: &str, ending: &str, taken: &mut Vec<String>) -> PathBuf {
    let dot = if ending.is_empty() { "" } else { "." };
    for number in 1_usize.. {
        let name = match number {
            1 => format!("{stem}{dot}{ending}"),
            n => format!("{stem} {n}{dot}{ending}"),
        };
        let path = folder.join(name);
        let key = path.to_string_lossy().to_lowercase();
        if !taken.contains(&key) {
            taken.push(key);
            return path;
        }
    }
    unreachable!("there are more numbers than chats")
}

fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| {
        Failure::message(format!(
            "cannot make the folder {}: {}",
            shown(folder),
            system_words(&error)
        ))
    })
}

fn write(path: &Path, text: &str) -> Outcome {
    write_whole(path, text.as_bytes())
        .map_err(|error| Failure::message(format!("cannot write {}: {}", shown(path), system_words(&error))))
}

pub fn import(arguments: &ImportArguments) -> Outcome {
    let (store, _lock) = open()?;
    let mut importing = Importing {
        store,
        imported: 0,
        failed: 0,
    };
    for path in &arguments.paths {
        if path.is_dir() {
            importing.folder(path, None);
        } else {
            importing.file(path, None);
        }
    }
    let Importing { imported, failed, .. } = importing;
    print(&format!("{} imported\n", counted(imported, "chat")))?;
    match failed {
        0 => Ok(()),
        n => Err(Failure::message(format!(
            "{} could not be imported",
            counted(n, "file")
        ))),
    }
}

struct Importing {
    store: ChatStore,
    imported: usize,
    /// Files, and folders that could not be looked into.
    failed: usize,
}

impl Importing {
    /// The JSON files of a folder, and those of the folders in it; all that is in one of these gets into the folder of its
    /// name, for chats have folders one level deep.
    fn folder(&mut self, path: &Path, into: Option<FolderId>) {
        let entries = fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.fail(path, &system_words(&error)),
        };
        entries.sort_by_key(fs::DirEntry::path);
        for entry in entries {
            let path = entry.path();
            // A link to a folder is not followed: it may lead around in a circle.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                match into.map_or_else(|| self.folder_of(&entry), |folder| Ok(Some(folder))) {
                    Ok(folder) => self.folder(&path, folder),
                    Err(reason) => self.fail(&path, &reason.to_string()),
                }
            } else if path.is_dir() {
                note(&format!("{}: this link to a folder was left out", shown(&path)));
            } else if path.extension().is_some_and(|ending| ending == "json") {
                self.file(&path, into);
            }
        }
    }

    /// The chats' folder for those of a folder on disk; none where its name is none.
    fn folder_of(&self, entry: &fs::DirEntry) -> Result<Option<FolderId>, StoreError> {
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.trim().is_empty() {
            true => Ok(None),
            false => Ok(Some(self.store.folder_called(&name)?.id)),
        }
    }

    fn file(&mut self, path: &Path, into: Option<FolderId>) {
        let imported = self.store.import_file(path).and_then(|chat| match into {
            Some(_) => self.store.move_chat(chat.id, into).map(drop),
            None => Ok(()),
        });
        match imported {
            Ok(()) => self.imported += 1,
            Err(reason) => self.fail(path, &reason.to_string()),
        }
    }

    fn fail(&mut self, path: &Path, reason: &str) {
        note(&format!("{}: {reason}", shown(path)));
        self.failed += 1;
    }
}

//! What the page may ask for about documents.

use std::path::PathBuf;

use reprise_library::index::State;
use tauri::ipc::{InvokeBody, Request};
use tauri::{AppHandle, Manager};
use tauri_plugin_opener::OpenerExt;

use super::{Outcome, file_dialog, off_the_runtime};
use crate::app::App;
use crate::types::{DocumentList, DocumentShown, DocumentText, Failure};

#[tauri::command(async)]
pub fn list_documents(
    app: tauri::State<'_, App>,
    query: String,
    source: Option<i64>,
    state: Option<State>,
) -> Outcome<DocumentList> {
    app.documents.list(&query, source, state)
}

#[tauri::command(async)]
pub fn suggest_documents(app: tauri::State<'_, App>, query: String) -> Outcome<Vec<DocumentShown>> {
    app.documents.suggest(&query)
}

/// Asks the person for files, or for a folder, and adds them; how many.
#[tauri::command]
pub async fn add_documents(handle: AppHandle, folder: bool) -> Outcome<usize> {
    off_the_runtime(move || {
        let dialog = file_dialog(&handle);
        let chosen = match folder {
            true => dialog.blocking_pick_folder().map(|folder| vec![folder]),
            false => dialog.blocking_pick_files(),
        };
        let paths: Vec<PathBuf> = chosen
            .unwrap_or_default()
            .into_iter()
            .map(tauri_plugin_dialog::FilePath::into_path)
            .collect::<Result<_, _>>()?;
        if !paths.is_empty() {
            handle.state::<App>().documents.add(&paths)?;
        }
        Ok(paths.len())
    })
    .await
}

/// Keeps a copy of a file that was dropped or pasted, whose bytes are the body; its name is a header, percent-encoded.
#[tauri::command]
pub async fn attach_file(handle: AppHandle, request: Request<'_>) -> Outcome<DocumentShown> {
    let InvokeBody::Raw(bytes) = request.body() else {
        return Err(Failure::new("a file comes as bytes"));
    };
    let bytes = bytes.clone();
    let name = request
        .headers()
        .get("name")
        .and_then(|name| name.to_str().ok())
        .map(|name| {
            percent_encoding::percent_decode_str(name)
                .decode_utf8_lossy()
                .into_owned()
        })
        .unwrap_or_default();
    off_the_runtime(move || handle.state::<App>().documents.attach(&name, &bytes)).await
}

/// Adds the document that comes with the program, to try things with.
#[tauri::command(async)]
pub fn add_sample(app: tauri::State<'_, App>) -> Outcome<DocumentShown> {
    app.documents
        .attach("handbook.md", include_bytes!("../../../assets/handbook.md"))
}

#[tauri::command(async)]
pub fn remove_source(app: tauri::State<'_, App>, source: i64) -> Outcome<()> {
    app.documents.remove(source)
}

#[tauri::command(async)]
pub fn unlock_document(app: tauri::State<'_, App>, id: String, password: String) -> Outcome<()> {
    app.documents.unlock(&id, &password)
}

#[tauri::command(async)]
pub fn stop_indexing(app: tauri::State<'_, App>) -> Outcome<()> {
    app.documents.stop();
    Ok(())
}

#[tauri::command(async)]
pub fn update_documents(app: tauri::State<'_, App>) -> Outcome<()> {
    app.documents.update();
    Ok(())
}

#[tauri::command(async)]
pub fn read_document(app: tauri::State<'_, App>, path: String) -> Outcome<DocumentText> {
    app.documents.read(&path)
}

/// Opens a document in the program that the system has for it.
#[tauri::command(async)]
pub fn open_document(handle: AppHandle, app: tauri::State<'_, App>, path: String) -> Outcome<()> {
    // The page may be led astray by what a model writes: nothing but the person's documents is opened.
    app.documents.check_known(&path)?;
    Ok(handle.opener().open_path(path, None::<&str>)?)
}

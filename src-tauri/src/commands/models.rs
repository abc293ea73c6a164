//! What the page may ask for about models.

use std::path::{Path, PathBuf};

use reprise_engine::KvFormat;
use reprise_engine::guard::Guard;
use reprise_library::folders;
use reprise_library::models::catalogue::{self, Entry};
use reprise_library::models::fit::{self, Card, Fit};
use reprise_library::models::found::Places;
use tauri::{AppHandle, Manager, State};

use super::{Outcome, off_the_runtime};
use crate::app::App;
use crate::types::{Failure, KvStorage, ModelOrigin, ModelShown, Settings};

/// The window where nobody chose one, for the figures of models whose file is not here.
const USUAL_WINDOW: usize = 8_192;

#[tauri::command(async)]
pub fn models_shown(app: State<'_, App>) -> Outcome<Vec<ModelShown>> {
    let scale = Scale::of(&app.host.settings());
    let mut shown = Vec::new();
    for entry in catalogue::entries()? {
        let file = app.shelf.file_of(&entry);
        shown.push(of_catalogue(entry, file, &scale));
    }
    let added = app.shelf.added()?;
    for added in &added {
        let mut model = of_file(&added.path, &scale);
        model.id = added.name.clone();
        model.name = added.name.clone();
        model.origin = ModelOrigin::Added;
        shown.push(model);
    }
    for found in Places::of_machine().look() {
        if added.iter().any(|added| added.path == found.path) {
            continue;
        }
        let mut model = of_file(&found.path, &scale);
        model.id = found.path.to_string_lossy().into_owned();
        model.name = found.name;
        model.found_in = Some(found.keeper.name().to_owned());
        shown.push(model);
    }
    Ok(shown)
}

/// Adds a model that another program has; the name it has from now on.
#[tauri::command(async)]
pub fn add_found(app: State<'_, App>, path: String) -> Outcome<String> {
    let path = PathBuf::from(path);
    let found = Places::of_machine().look();
    let Some(found) = found.into_iter().find(|found| found.path == path) else {
        return Err(Failure::new(format!(
            "{} is not there any more; look at the models again",
            folders::shown(&path)
        )));
    };
    app.add_model(&found.path, &found.name)
}

#[tauri::command(async)]
pub fn remove_model(app: State<'_, App>, id: String) -> Outcome<()> {
    Ok(app.shelf.remove(&id)?)
}

/// Begins to fetch a model of the catalogue; events tell how far it is.
#[tauri::command(async)]
pub fn fetch_model(app: State<'_, App>, id: String) -> Outcome<()> {
    app.fetches.begin(&app.shelf, &id)
}

#[tauri::command(async)]
pub fn stop_fetching(app: State<'_, App>, id: String) -> Outcome<()> {
    app.fetches.stop(&id);
    Ok(())
}

/// Forgets what was measured for the model in use, so that it is measured anew while nobody asks for anything.
#[tauri::command]
pub async fn tune_model(handle: AppHandle) -> Outcome<()> {
    off_the_runtime(move || handle.state::<App>().tune_model()).await
}

/// What figures are made with.
struct Scale {
    /// Bytes that the program may take.
    limit_bytes: u64,
    window: Option<usize>,
    format: KvFormat,
}

impl Scale {
    fn of(settings: &Settings) -> Scale {
        let asked = settings.load_options().memory_limit_bytes;
        Scale {
            limit_bytes: Guard::new(asked).footprint().limit_bytes,
            window: settings.context_tokens,
            format: match settings.kv_storage {
                KvStorage::F16 => KvFormat::F16,
                // What measured well for most models lies between four and eight bits.
                KvStorage::Q8 | KvStorage::Profile => KvFormat::Q8,
                KvStorage::Tq4 => KvFormat::Tq4,
            },
        }
    }

    fn window_of(&self, trained: usize) -> usize {
        self.window.unwrap_or(USUAL_WINDOW).min(trained)
    }

    fn fit(&self, needed_bytes: u64) -> Fit {
        Fit::of(needed_bytes, self.limit_bytes)
    }
}

fn of_catalogue(entry: Entry, file: Option<PathBuf>, scale: &Scale) -> ModelShown {
    let can_fetch = file.is_none() && entry.url().is_some();
    let about = match &file {
        Some(path) => of_file(path, scale),
        None => {
            let needed = fit::about(entry.size_bytes, scale.window_of(entry.context));
            ModelShown {
                context_tokens: Some(entry.context),
                size_bytes: entry.size_bytes,
                needs_bytes: Some(needed),
                fit: Some(scale.fit(needed)),
                ..unknown()
            }
        }
    };
    ModelShown {
        id: entry.name,
        name: entry.title,
        note: entry.note,
        origin: ModelOrigin::Catalogue,
        licence: Some(entry.licence),
        page: Some(entry.page),
        can_fetch,
        ..about
    }
}

fn of_file(path: &Path, scale: &Scale) -> ModelShown {
    let shown = ModelShown {
        path: Some(folders::shown(path)),
        note: folders::shown(path),
        size_bytes: path.metadata().map_or(0, |file| file.len()),
        ..unknown()
    };
    match Card::read(path) {
        Ok(card) => {
            let needed = card.needed_bytes(scale.window_of(card.context_tokens), scale.format);
            ModelShown {
                quantisation: Some(card.quantisation),
                context_tokens: Some(card.context_tokens),
                needs_bytes: Some(needed),
                fit: Some(scale.fit(needed)),
                ..shown
            }
        }
        Err(error) => ModelShown {
            trouble: Some(error.to_string()),
            ..shown
        },
    }
}

fn unknown() -> ModelShown {
    ModelShown {
        id: String::new(),
        name: String::new(),
        note: String::new(),
        origin: ModelOrigin::Found,
        found_in: None,
        path: None,
        size_bytes: 0,
        quantisation: None,
        context_tokens: None,
        needs_bytes: None,
        fit: None,
        licence: None,
        page: None,
        trouble: None,
        can_fetch: false,
    }
}

//! What the page may ask for. Thin: each command checks what only it can know and leaves the work to the store and the
//! host. All run off the window's own thread.

pub mod documents;
pub mod models;
pub mod skills;

use reprise_engine::snapshot::Snapshot;
use reprise_engine::store::{ChunkId, Owner};
use reprise_library::cache::KeptChunk;
use reprise_library::chats::{
    Chat, ChatId, ChatSummary, ExportFormat, Folder, FolderId, Given, Origin, Role, SearchHit, Turn, TurnId,
};
use reprise_library::citations::linked;
use reprise_library::converse::{self, Coming};
use reprise_library::index::DocumentId;
use reprise_library::inspection::Inspection;
use reprise_library::models::catalogue;
use reprise_library::{files, folders};
use tauri::ipc::Channel;
use tauri::{AppHandle, Manager, State, Wry};
use tauri_plugin_dialog::{DialogExt, FileDialogBuilder};
use tauri_plugin_opener::OpenerExt;

use crate::app::App;
use crate::types::{
    AnswerSources, AppEvent, Asked, Chips, ContextUse, Failure, Kept, ModelChoice, Settings, Start,
};

/// What a command gives.
type Outcome<T> = Result<T, Failure>;

/// Most hits of a search that are shown.
const MOST_HITS: usize = 50;
/// Text beyond this is not counted while it is typed: the count would come too late to be of use.
const LONGEST_COUNTED_BYTES: usize = 4 << 20;

#[tauri::command(async)]
pub fn start(app: State<'_, App>, events: Channel<Vec<AppEvent>>) -> Outcome<Start> {
    app.events.connect(events);
    Ok(Start {
        settings: app.host.settings(),
        default_settings: Settings::default(),
        model: app.host.model(),
        list: app.store.list()?,
        new_chat_draft: app.store.new_chat_draft()?,
        notices: app.take_notices(),
        phases: app.host.under_way(),
        questions: app.host.questions(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: reprise_engine::machine::COMMIT.into(),
        data_folder: folders::shown(&app.data_folder),
        is_mac: cfg!(target_os = "macos"),
    })
}

#[tauri::command(async)]
pub fn open_chat(app: State<'_, App>, chat: ChatId) -> Outcome<Chat> {
    let chat = app.store.chat(chat)?;
    for turn in &chat.turns {
        app.tell_missing_fonts(&turn.text);
    }
    Ok(chat)
}

#[tauri::command(async)]
pub fn send(
    app: State<'_, App>,
    chat: Option<ChatId>,
    parent: Option<TurnId>,
    text: String,
    asked: Asked,
) -> Outcome<Chat> {
    // First what it is given: a question that cannot be given it is not in the chat.
    let given = app.given(&text, parent, &asked)?;
    let turn = match chat {
        Some(chat) => {
            if let Some(answer) = parent {
                app.host.settle(answer)?;
            }
            app.store.add_user_turn(chat, parent, &text)?
        }
        None => app.store.begin_chat(&text)?,
    };
    app.tell_missing_fonts(&text);
    answer_from(&app, &turn, &given)
}

#[tauri::command(async)]
pub fn edit_turn(app: State<'_, App>, turn: TurnId, text: String) -> Outcome<Chat> {
    let old = app.store.turn(turn)?;
    if let Some(answer) = old.parent {
        app.host.settle(answer)?;
    }
    // With the same skills, and of the same documents what the new text asks for.
    let before = app.store.given_up_to(old.id)?.remove(&old.id).unwrap_or_default();
    let given = app.given(&text, old.parent, &asked_with(&before))?;
    let turn = app.store.add_user_turn(old.chat, old.parent, &text)?;
    answer_from(&app, &turn, &given)
}

/// An answer to a new question that is to be made from these.
fn answer_from(app: &App, question: &Turn, given: &[Given]) -> Outcome<Chat> {
    if !given.is_empty() {
        app.store.set_given(question.id, given)?;
    }
    begin_answer(app, question)
}

/// What a question was asked with that was given these.
fn asked_with(given: &[Given]) -> Asked {
    let mut asked = Asked::default();
    for one in given {
        let (names, name) = match &one.source {
            Origin::Passage { owner, .. } => match DocumentId::of_owner(owner) {
                Some((_, document)) => (&mut asked.documents, document.to_string()),
                None => continue,
            },
            Origin::Skill { name } => (&mut asked.skills, name.clone()),
            Origin::Earlier { .. } | Origin::Call | Origin::Result { .. } => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    asked
}

/// What an answer was made from, and the answer with its marks as links.
#[tauri::command(async)]
pub fn sources(app: State<'_, App>, turn: TurnId) -> Outcome<AnswerSources> {
    let answer = app.store.turn(turn)?;
    let mut all = app.store.given_up_to(turn)?;
    let given = answer
        .parent
        .and_then(|question| all.remove(&question))
        .unwrap_or_default();
    let (text, cited) = linked(&answer.text, &given);
    let steps = app.store.steps_of(turn)?;
    Ok(AnswerSources {
        text,
        given,
        cited,
        steps,
    })
}

#[tauri::command(async)]
pub fn regenerate(app: State<'_, App>, turn: TurnId) -> Outcome<Chat> {
    let turn = app.store.turn(turn)?;
    let question = match (turn.role, turn.parent) {
        // A question that was left without an answer.
        (Role::User, _) => turn,
        (Role::Assistant, Some(parent)) => app.store.turn(parent)?,
        (Role::Assistant, None) => return Err(Failure::new("this answer has no question; ask one")),
    };
    begin_answer(&app, &question)
}

#[tauri::command(async)]
pub fn continue_turn(app: State<'_, App>, turn: TurnId) -> Outcome<Chat> {
    let turn = app.store.continue_answer(turn)?;
    let chat = app.store.chat(turn.chat);
    app.host.answer(&turn);
    Ok(chat?)
}

/// An answer to this turn of the person, as a branch beside those it has.
fn begin_answer(app: &App, question: &Turn) -> Outcome<Chat> {
    let answer = app.store.begin_answer(question.id, &app.model_name())?;
    // Read before the engine begins, so that every piece of text the page gets comes after what it shows.
    let chat = app.store.chat(question.chat);
    app.host.answer(&answer);
    Ok(chat?)
}

#[tauri::command(async)]
pub fn stop(app: State<'_, App>, turn: TurnId) -> Outcome<()> {
    app.host.stop(turn)
}

#[tauri::command(async)]
pub fn select_branch(app: State<'_, App>, turn: TurnId) -> Outcome<Chat> {
    Ok(app.store.select_branch(turn)?)
}

#[tauri::command(async)]
pub fn rename_chat(app: State<'_, App>, chat: ChatId, title: String) -> Outcome<ChatSummary> {
    Ok(app.store.rename_chat(chat, &title)?)
}

#[tauri::command(async)]
pub fn pin_chat(app: State<'_, App>, chat: ChatId, pinned: bool) -> Outcome<ChatSummary> {
    Ok(app.store.pin_chat(chat, pinned)?)
}

#[tauri::command(async)]
pub fn move_chat(app: State<'_, App>, chat: ChatId, folder: Option<FolderId>) -> Outcome<ChatSummary> {
    Ok(app.store.move_chat(chat, folder)?)
}

#[tauri::command(async)]
pub fn delete_chat(app: State<'_, App>, chat: ChatId) -> Outcome<()> {
    app.host.stop_chat(chat)?;
    Ok(app.store.delete_chat(chat)?)
}

#[tauri::command(async)]
pub fn restore_chat(app: State<'_, App>, chat: ChatId) -> Outcome<ChatSummary> {
    Ok(app.store.restore_chat(chat)?)
}

#[tauri::command(async)]
pub fn add_folder(app: State<'_, App>, name: String) -> Outcome<Folder> {
    Ok(app.store.add_folder(&name)?)
}

#[tauri::command(async)]
pub fn rename_folder(app: State<'_, App>, folder: FolderId, name: String) -> Outcome<Folder> {
    Ok(app.store.rename_folder(folder, &name)?)
}

#[tauri::command(async)]
pub fn remove_folder(app: State<'_, App>, folder: FolderId) -> Outcome<()> {
    Ok(app.store.remove_folder(folder)?)
}

#[tauri::command(async)]
pub fn set_draft(app: State<'_, App>, chat: Option<ChatId>, text: String) -> Outcome<()> {
    // The page knows what it sends: telling it back would overtake what is typed meanwhile.
    app.store.set_draft(chat, &text)?;
    Ok(())
}

/// What the next message was to be asked with when the chat, or the window, was left.
#[tauri::command(async)]
pub fn chips(app: State<'_, App>, chat: Option<ChatId>) -> Outcome<Chips> {
    let Some(kept) = app.store.draft_with(chat)? else {
        return Ok(Chips::default());
    };
    // One that an older program or another hand has written otherwise is picked anew.
    let asked: Asked = serde_json::from_value(kept).unwrap_or_default();
    Ok(Chips {
        documents: app.documents.known(&asked.documents)?,
        all_documents: asked.all_documents,
        skills: asked.skills,
    })
}

#[tauri::command(async)]
pub fn set_chips(app: State<'_, App>, chat: Option<ChatId>, asked: Asked) -> Outcome<()> {
    let with = match asked == Asked::default() {
        true => None,
        false => Some(serde_json::to_value(&asked)?),
    };
    app.store.set_draft_with(chat, with.as_ref())?;
    Ok(())
}

#[tauri::command(async)]
pub fn search(app: State<'_, App>, query: String) -> Outcome<Vec<SearchHit>> {
    Ok(app.store.search(&query, MOST_HITS)?)
}

#[tauri::command]
pub async fn export_chat(handle: AppHandle, chat: ChatId, format: ExportFormat) -> Outcome<Option<String>> {
    let (name, extension) = match format {
        ExportFormat::Markdown => ("Markdown", "md"),
        ExportFormat::Json => ("JSON", "json"),
    };
    off_the_runtime(move || {
        let app = handle.state::<App>();
        let title = app.store.summary(chat)?.title.unwrap_or_else(|| "Chat".into());
        let chosen = file_dialog(&handle)
            .set_file_name(format!("{}.{extension}", files::stem_of(&title)))
            .add_filter(name, &[extension])
            .blocking_save_file();
        let Some(chosen) = chosen else {
            return Ok(None);
        };
        let path = chosen.into_path()?;
        crate::files::write_whole(&path, app.store.export(chat, format)?.as_bytes())?;
        Ok(Some(folders::shown(&path)))
    })
    .await
}

/// A dialog that belongs to the window.
fn file_dialog(handle: &AppHandle) -> FileDialogBuilder<Wry> {
    let dialog = handle.dialog().file();
    match handle.get_webview_window(crate::WINDOW) {
        Some(window) => dialog.set_parent(&window),
        None => dialog,
    }
}

/// Runs what waits for a person on a thread of its own: the few that serve commands are needed for Stop.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    tauri::async_runtime::spawn_blocking(work).await?
}

#[tauri::command(async)]
pub fn context_use(
    app: State<'_, App>,
    chat: Option<ChatId>,
    draft: String,
    asked: Asked,
) -> Outcome<Option<ContextUse>> {
    let Some(loaded) = app.host.loaded().filter(|_| draft.len() <= LONGEST_COUNTED_BYTES) else {
        return Ok(None);
    };
    let turns = match chat {
        Some(chat) => app.store.chat(chat)?.turns,
        None => Vec::new(),
    };
    let given = match turns.last() {
        Some(last) => app.store.given_up_to(last.id)?,
        None => Default::default(),
    };
    let instructions = app.host.settings().instructions();
    let writer = &loaded.writer;
    let coming_given = app.given_so_far(&draft, turns.last().map(|turn| turn.id), &asked);
    let coming = Coming::Draft {
        text: &draft,
        given: &coming_given,
    };
    let laid_out = converse::layout(writer, &loaded.counts, &turns, &given, &instructions, coming);
    let window = writer.info().context_tokens;
    let reserved_output = writer.answer_room(instructions.options.max_tokens);
    let given = laid_out.given_tokens;
    let used = laid_out.system_tokens
        + laid_out.history_tokens
        + given.total()
        + laid_out.draft_tokens
        + reserved_output;
    Ok(Some(ContextUse {
        window,
        system: laid_out.system_tokens,
        skills: given.skills + given.tools,
        passages: given.passages + given.earlier,
        history: laid_out.history_tokens,
        draft: laid_out.draft_tokens,
        typed: writer.count(&draft),
        reserved_output,
        free: window.saturating_sub(used),
        hidden_turns: laid_out.hidden_turns,
    }))
}

#[tauri::command(async)]
pub fn save_settings(app: State<'_, App>, settings: Settings) -> Outcome<Settings> {
    settings.check()?;
    app.save_settings(&settings)?;
    Ok(settings)
}

#[tauri::command(async)]
pub fn list_models(app: State<'_, App>) -> Outcome<Vec<ModelChoice>> {
    let mut choices = Vec::new();
    for entry in catalogue::entries()? {
        if let Some(path) = app.shelf.file_of(&entry) {
            choices.push(ModelChoice {
                size_bytes: path.metadata().map_or(entry.size_bytes, |file| file.len()),
                id: entry.name,
                name: entry.title,
                note: entry.note,
            });
        }
    }
    for added in app.shelf.added()? {
        let Ok(file) = added.path.metadata() else {
            continue; // gone for now, perhaps on a disk that is not plugged in
        };
        choices.push(ModelChoice {
            id: added.name.clone(),
            name: added.name,
            size_bytes: file.len(),
            note: folders::shown(&added.path),
        });
    }
    Ok(choices)
}

#[tauri::command]
pub async fn add_model(handle: AppHandle) -> Outcome<Option<ModelChoice>> {
    off_the_runtime(move || {
        let chosen = file_dialog(&handle)
            .add_filter("GGUF", &["gguf"])
            .blocking_pick_file();
        let Some(chosen) = chosen else {
            return Ok(None);
        };
        let path = chosen.into_path()?;
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = handle.state::<App>().add_model(&path, &stem)?;
        Ok(Some(ModelChoice {
            id: name.clone(),
            name,
            size_bytes: path.metadata().map_or(0, |file| file.len()),
            note: folders::shown(&path),
        }))
    })
    .await
}

#[tauri::command(async)]
pub fn reload_model(app: State<'_, App>) -> Outcome<()> {
    app.load_model();
    Ok(())
}

#[tauri::command(async)]
pub fn snapshot(app: State<'_, App>) -> Outcome<Option<Snapshot>> {
    Ok(app.host.snapshot())
}

#[tauri::command(async)]
pub fn inspect(app: State<'_, App>, turn: TurnId) -> Outcome<Inspection> {
    app.host.inspect(turn)
}

#[tauri::command(async)]
pub fn list_kept(app: State<'_, App>) -> Outcome<Kept> {
    let folder = folders::shown(&folders::kv()?);
    let kept = app.with_cache(|cache, chats| {
        let stats = cache.store().stats()?;
        Ok((cache.owners(chats)?, stats))
    })?;
    let (owners, chunks, bytes) = kept.map_or_else(Default::default, |(owners, stats)| {
        (owners, stats.chunks, stats.bytes)
    });
    Ok(Kept {
        owners,
        chunks,
        bytes,
        folder,
    })
}

#[tauri::command(async)]
pub fn list_chunks(app: State<'_, App>, owner: String) -> Outcome<Vec<KeptChunk>> {
    let owner: Owner = owner.parse()?;
    let chunks = app.with_cache(move |cache, _| Ok(cache.chunks(&owner)?))?;
    Ok(chunks.unwrap_or_default())
}

#[tauri::command(async)]
pub fn pin_chunk(app: State<'_, App>, chunk: String, pinned: bool) -> Outcome<()> {
    let chunk: ChunkId = chunk.parse()?;
    app.with_cache(move |cache, _| Ok(cache.set_pinned(&[chunk], pinned)?))?;
    Ok(())
}

#[tauri::command(async)]
pub fn evict_chunk(app: State<'_, App>, chunk: String) -> Outcome<()> {
    let chunk: ChunkId = chunk.parse()?;
    app.with_cache(move |cache, _| Ok(cache.evict(&[chunk])?))?;
    Ok(())
}

#[tauri::command(async)]
pub fn erase_kept(app: State<'_, App>, owner: Option<String>) -> Outcome<()> {
    let owner: Option<Owner> = owner.map(|owner| owner.parse()).transpose()?;
    app.with_cache(move |cache, _| {
        match &owner {
            Some(owner) => cache.erase(owner)?,
            None => cache.erase_all()?,
        };
        Ok(())
    })?;
    Ok(())
}

/// Erases chats, documents and what is kept of texts: nothing of it can be had back.
#[tauri::command]
pub async fn erase_everything(handle: AppHandle) -> Outcome<()> {
    off_the_runtime(move || handle.state::<App>().erase_everything()).await
}

#[tauri::command(async)]
pub fn open_link(handle: AppHandle, url: String) -> Outcome<()> {
    let parsed =
        tauri::Url::parse(&url).map_err(|error| Failure::new(format!("{url} is not a link: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https" | "mailto") {
        return Err(Failure::new(format!(
            "links to {}: are not opened; only web pages and mail addresses are",
            parsed.scheme()
        )));
    }
    Ok(handle.opener().open_url(parsed.as_str(), None::<&str>)?)
}

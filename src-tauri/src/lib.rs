//! The window: Reprise as a desktop application.
//!
//! It shows a page (`ui/`), passes its wishes on and tells it what happens. It holds no logic that the command line would
//! need too: chats, models and answers are the library's, numbers the engine's.
//!
//! ```no_run
//! let code = reprise_app::run(); // returns when the window is closed
//! assert_eq!(code, 0);
//! ```

mod app;
mod commands;
mod documents;
mod events;
mod fetches;
mod files;
mod giving;
mod host;
mod pictures;
pub mod platform;
mod settings;
pub mod types;

use std::hash::{DefaultHasher, Hash, Hasher};

use tauri::{AppHandle, Manager, RunEvent, Url, WebviewUrl, WebviewWindow, WebviewWindowBuilder};
use tauri_plugin_dialog::{DialogExt, MessageDialogKind};
use tauri_plugin_window_state::StateFlags;

use app::App;
use types::Failure;

/// The only window's name.
const WINDOW: &str = "main";

/// Runs the application until its window is closed; gives the exit code.
pub fn run() -> i32 {
    let mut builder = tauri::Builder::default();
    // First of all, so that a second instance touches nothing.
    builder = builder.plugin(single_instance());
    builder = builder
        .plugin(
            tauri_plugin_window_state::Builder::new()
                .with_state_flags(StateFlags::SIZE | StateFlags::POSITION | StateFlags::MAXIMIZED)
                .build(),
        )
        .plugin(tauri_plugin_dialog::init())
        .plugin(tauri_plugin_opener::init())
        .invoke_handler(tauri::generate_handler![
            commands::start,
            commands::open_chat,
            commands::send,
            commands::edit_turn,
            commands::regenerate,
            commands::continue_turn,
            commands::stop,
            commands::select_branch,
            commands::rename_chat,
            commands::pin_chat,
            commands::move_chat,
            commands::delete_chat,
            commands::restore_chat,
            commands::add_folder,
            commands::rename_folder,
            commands::remove_folder,
            commands::set_draft,
            commands::chips,
            commands::set_chips,
            commands::search,
            commands::export_chat,
            commands::context_use,
            commands::save_settings,
            commands::list_models,
            commands::add_model,
            commands::reload_model,
            commands::open_link,
            commands::snapshot,
            commands::inspect,
            commands::list_kept,
            commands::list_chunks,
            commands::pin_chunk,
            commands::evict_chunk,
            commands::erase_kept,
            commands::sources,
            commands::erase_everything,
            commands::documents::list_documents,
            commands::documents::suggest_documents,
            commands::documents::add_documents,
            commands::documents::attach_file,
            commands::documents::add_sample,
            commands::documents::remove_source,
            commands::documents::unlock_document,
            commands::documents::stop_indexing,
            commands::documents::update_documents,
            commands::documents::read_document,
            commands::documents::open_document,
            commands::skills::list_skills,
            commands::skills::enable_skill,
            commands::skills::trust_skill,
            commands::skills::read_skill_file,
            commands::skills::answer_question,
            commands::models::models_shown,
            commands::models::add_found,
            commands::models::remove_model,
            commands::models::fetch_model,
            commands::models::stop_fetching,
            commands::models::tune_model,
        ])
        .setup(|tauri| {
            let handle = tauri.handle();
            let bundled = handle
                .path()
                .resource_dir()
                .ok()
                .map(|folder| folder.join("models"));
            match App::open(bundled) {
                Ok(app) => {
                    handle.manage(app);
                    open_window(handle)?;
                }
                Err(failure) => give_up(handle, failure),
            }
            Ok(())
        });
    let built = match builder.build(tauri::generate_context!()) {
        Ok(built) => built,
        Err(error) => {
            eprintln!("error: the window cannot be opened: {error}");
            return 1;
        }
    };
    built.run_return(|handle, event| {
        if let (RunEvent::Exit, Some(app)) = (event, handle.try_state::<App>()) {
            app.quit();
        }
    })
}

/// A second instance brings the window of the first to the front and ends. Instances with another data folder
/// (`REPRISE_HOME`) have nothing to do with each other.
fn single_instance<R: tauri::Runtime>() -> tauri::plugin::TauriPlugin<R> {
    let mut plugin = tauri_plugin_single_instance::Builder::new().callback(|handle, _arguments, _folder| {
        if let Some(window) = handle.get_webview_window(WINDOW) {
            bring_to_front(&window);
        }
    });
    if let Some(folder) = std::env::var_os("REPRISE_HOME").filter(|folder| !folder.is_empty()) {
        let mut hasher = DefaultHasher::new();
        std::path::absolute(&folder)
            .unwrap_or(folder.into())
            .hash(&mut hasher);
        plugin = plugin.dbus_id(format!("app.reprise.home{:016x}", hasher.finish()));
    }
    plugin.build()
}

fn bring_to_front<R: tauri::Runtime>(window: &WebviewWindow<R>) {
    for outcome in [window.show(), window.unminimize(), window.set_focus()] {
        if let Err(error) = outcome {
            tracing::warn!(%error, "the window could not be brought to the front");
        }
    }
}

fn open_window(handle: &AppHandle) -> tauri::Result<()> {
    let window = WebviewWindowBuilder::new(handle, WINDOW, WebviewUrl::default())
        .title("Reprise")
        .inner_size(1200.0, 800.0)
        .min_inner_size(720.0, 560.0)
        .center()
        .zoom_hotkeys_enabled(true)
        // Files dropped on the window are the page's to take.
        .disable_drag_drop_handler()
        .on_navigation(is_own_page)
        .on_document_title_changed(|window, title| {
            if let Err(error) = window.set_title(&title) {
                tracing::warn!(%error, "the window's title could not be set");
            }
        })
        .build()?;
    platform::revive_page(&window)
}

/// The page never leaves the program: links open outside, after asking.
fn is_own_page(url: &Url) -> bool {
    match url.scheme() {
        "tauri" => true,
        // Where the system allows no scheme of one's own; and, while developing, the development server.
        "http" | "https" => match url.host_str() {
            Some("tauri.localhost") => true,
            Some("localhost") => tauri::is_dev(),
            _ => false,
        },
        _ => url.as_str() == "about:blank",
    }
}

/// Tells why the program cannot work, where the person sees it, and ends it.
fn give_up(handle: &AppHandle, failure: Failure) {
    eprintln!("error: {}", failure.message);
    let ending = handle.clone();
    handle
        .dialog()
        .message(failure.message)
        .title("Reprise cannot start")
        .kind(MessageDialogKind::Error)
        .show(move |_| ending.exit(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_shows_nothing_but_the_programs_own_page() {
        let shown = |url: &str| is_own_page(&Url::parse(url).unwrap());
        assert!(shown("tauri://localhost/index.html") && shown("http://tauri.localhost/"));
        assert!(!shown("https://example.org/") && !shown("file:///etc/passwd") && !shown("data:text/html,x"));
        assert!(!shown("http://localhost:8000/"));
        assert!(!shown("https://tauri.localhost.example.org/"));
    }
}

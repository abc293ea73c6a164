//! Generates what Tauri needs, and builds the program anew when the page inside it has changed.

use tauri_build::{AppManifest, Attributes};

/// The commands of `commands.rs` and below it. Each gets a permission of its own, and `capabilities/main.json` grants it.
const COMMANDS: &[&str] = &[
    "start",
    "open_chat",
    "send",
    "edit_turn",
    "regenerate",
    "continue_turn",
    "stop",
    "select_branch",
    "rename_chat",
    "pin_chat",
    "move_chat",
    "delete_chat",
    "restore_chat",
    "add_folder",
    "rename_folder",
    "remove_folder",
    "set_draft",
    "chips",
    "set_chips",
    "search",
    "export_chat",
    "context_use",
    "save_settings",
    "list_models",
    "add_model",
    "reload_model",
    "open_link",
    "snapshot",
    "erase_kept",
    "evict_chunk",
    "pin_chunk",
    "list_chunks",
    "list_kept",
    "inspect",
    "sources",
    "erase_everything",
    "list_documents",
    "suggest_documents",
    "add_documents",
    "attach_file",
    "add_sample",
    "remove_source",
    "unlock_document",
    "stop_indexing",
    "update_documents",
    "read_document",
    "open_document",
    "list_skills",
    "enable_skill",
    "trust_skill",
    "read_skill_file",
    "answer_question",
    "models_shown",
    "add_found",
    "remove_model",
    "fetch_model",
    "stop_fetching",
    "tune_model",
];

fn main() {
    println!("cargo:rerun-if-changed=../ui/dist");
    let attributes = Attributes::new().app_manifest(AppManifest::new().commands(COMMANDS));
    if let Err(error) = tauri_build::try_build(attributes) {
        panic!("{error:#}");
    }
}

//! macOS and Windows bring their own web view, fonts and display; there is nothing to prepare. Not run here.

pub fn prepare() -> Result<(), String> {
    Ok(())
}

pub fn revive_page<R: tauri::Runtime>(_window: &tauri::WebviewWindow<R>) -> tauri::Result<()> {
    Ok(())
}

/// Windows and macOS let the program in front go first by themselves.
pub fn let_the_window_go_first() {}

pub fn has_cjk_fonts() -> bool {
    true
}

//! macOS and Windows bring their own web view, fonts and display; there is nothing to prepare. Not run here.

pub fn prepare() -> Result<(), String> {
    Ok(())
}

pub fn has_cjk_fonts() -> bool {
    true
}

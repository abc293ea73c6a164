//! What differs between systems, behind one interface: what must be so before the window opens, which threads go first,
//! and which fonts there are. Linux is what runs here; the parts for other systems were compiled nowhere yet.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
use other as system;

/// Prepares the process before anything of the window is touched.
///
/// # Errors
/// A sentence for the person when no window can be opened here.
pub fn prepare() -> Result<(), String> {
    system::prepare()
}

/// Loads the page anew when the process that draws it dies, where the system does not do that itself.
///
/// # Errors
/// When the window is gone already.
pub fn revive_page<R: tauri::Runtime>(window: &tauri::WebviewWindow<R>) -> tauri::Result<()> {
    system::revive_page(window)
}

/// Lets the window go first: this thread, and those that it starts from now on, get the processor when the window does not
/// want it. Computing takes every core for seconds, and typing and scrolling must not wait for it.
pub fn let_the_window_go_first() {
    system::let_the_window_go_first();
}

/// Whether the system has letters for Chinese, Japanese and Korean; true where it cannot be known.
pub fn has_cjk_fonts() -> bool {
    system::has_cjk_fonts()
}

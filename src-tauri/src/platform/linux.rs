//! Linux: WebKitGTK's traps, a display that may be missing, fonts that may be missing.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use webkit2gtk::WebViewExt;

/// Makes WebKit draw without DMA-BUF, which leaves the window blank with some drivers.
const PLAIN_RENDERER: &str = "WEBKIT_DISABLE_DMABUF_RENDERER";

pub fn prepare() -> Result<(), String> {
    if !has_display(|name| env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Err(
            "there is no display to open a window on (DISPLAY and WAYLAND_DISPLAY are not set); \
             to chat in the terminal instead: ./run chat, or: reprise chat"
                .into(),
        );
    }
    if env::var_os(PLAIN_RENDERER).is_none() && needs_plain_renderer(Path::new("/")) {
        // The variable has to be there before the first thread: the program starts anew with it, in the same process.
        let program =
            env::current_exe().map_err(|error| format!("cannot find this program's own file: {error}"))?;
        let error = Command::new(program)
            .args(env::args_os().skip(1))
            .env(PLAIN_RENDERER, "1")
            .exec();
        return Err(format!("cannot start anew with {PLAIN_RENDERER}=1: {error}"));
    }
    Ok(())
}

fn has_display(is_set: impl Fn(&str) -> bool) -> bool {
    is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Whether the graphics driver is one of those that leave WebKitGTK's window blank (NVIDIA's own), or there is none
/// to draw with.
fn needs_plain_renderer(root: &Path) -> bool {
    let has_nvidia =
        root.join("proc/driver/nvidia/version").exists() || root.join("sys/module/nvidia").exists();
    let has_renderer = fs::read_dir(root.join("dev/dri")).is_ok_and(|files| {
        files
            .flatten()
            .any(|file| file.file_name().to_string_lossy().starts_with("renderD"))
    });
    has_nvidia || !has_renderer
}

/// WebKitGTK leaves the window blank when its web process has crashed or was killed for want of memory. The program still
/// has everything; the page asks for it when it starts.
pub fn revive_page<R: tauri::Runtime>(window: &tauri::WebviewWindow<R>) -> tauri::Result<()> {
    window.with_webview(|webview| {
        webview.inner().connect_web_process_terminated(|view, reason| {
            tracing::error!(?reason, "the page's process ended; the page is loaded anew");
            view.reload();
        });
    })
}

/// How much nicer than the window the threads are that compute. Measured in tests/benchmarks.md: with as many of them as cores
/// the page stood still for over 50 ms a tenth as often, tokens came as fast, and ten gained no more.
const NICER: i32 = 5;

/// On Linux niceness is a thread's own, and threads begin with that of the one that starts them.
pub fn let_the_window_go_first() {
    if let Err(error) = rustix::process::nice(NICER) {
        tracing::warn!(%error, "computing is not put behind the window");
    }
}

/// Asks fontconfig. Without its command nothing can be known, and nothing is said.
pub fn has_cjk_fonts() -> bool {
    ["zh", "ja", "ko"].iter().all(|language| {
        let listed = Command::new("fc-list")
            .arg(format!(":lang={language}"))
            .arg("family")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        !matches!(listed, Ok(output) if output.status.success() && output.stdout.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The niceness of the calling thread.
    fn niceness() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    #[test]
    fn only_the_threads_that_ask_for_it_and_their_own_are_nicer() {
        let before = niceness();
        let (own, child) = std::thread::spawn(|| {
            let_the_window_go_first();
            (niceness(), std::thread::spawn(niceness).join().unwrap())
        })
        .join()
        .unwrap();
        let nicer = (before + NICER).min(19);
        assert_eq!((own, child), (nicer, nicer));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn the_plain_renderer_is_for_nvidia_and_for_machines_without_a_gpu() {
        let root = tempfile::tempdir().unwrap();
        assert!(needs_plain_renderer(root.path()), "no GPU");
        fs::create_dir_all(root.path().join("dev/dri")).unwrap();
        assert!(needs_plain_renderer(root.path()), "a card that cannot render");
        fs::write(root.path().join("dev/dri/renderD128"), "").unwrap();
        assert!(!needs_plain_renderer(root.path()), "an ordinary GPU");
        fs::create_dir_all(root.path().join("sys/module/nvidia")).unwrap();
        assert!(needs_plain_renderer(root.path()), "NVIDIA's own driver");
    }

    #[test]
    fn either_display_is_enough() {
        assert!(has_display(|name| name == "DISPLAY"));
        assert!(has_display(|name| name == "WAYLAND_DISPLAY"));
        assert!(!has_display(|_| false));
    }
}

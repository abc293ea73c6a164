//! Notes the commit the engine is built from, for benchmark tables.

use std::process::Command;

fn main() {
    let commit = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let commit = commit.as_deref().map_or("an unknown commit", str::trim);
    println!("cargo::rustc-env=REPRISE_COMMIT={commit}");
    for file in ["HEAD", "index"] {
        println!("cargo::rerun-if-changed=../.git/{file}");
    }
}

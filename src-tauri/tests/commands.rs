//! A command that the page may not call fails only in the window: each that the program answers must be granted.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn names<'a>(text: &'a str, before: &str) -> BTreeSet<&'a str> {
    text.split(before)
        .skip(1)
        .filter_map(|rest| {
            rest.split(|c: char| !(c.is_ascii_lowercase() || c == '_' || c == '-'))
                .next()
        })
        .collect()
}

#[test]
fn every_command_is_granted_to_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let program = read("src/lib.rs");
    let (_, handled) = program.split_once("generate_handler![").unwrap();
    let (handled, _) = handled.split_once(']').unwrap();
    let handled: BTreeSet<String> = handled
        .split(',')
        .filter_map(|path| path.trim().rsplit("::").next().map(str::to_owned))
        .filter(|name| !name.is_empty())
        .collect();
    assert!(handled.contains("set_draft"), "{handled:?}");
    let capabilities = read("capabilities/main.json");
    let granted: BTreeSet<String> = names(&capabilities, "\"allow-")
        .into_iter()
        .map(|name| name.replace('-', "_"))
        .collect();
    assert_eq!(
        handled.difference(&granted).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

//! Prints what each file gives, as a Markdown table: `cargo run --release -p reprise-library --example extract -- FILE...`
//!
//! With `--text` first it prints the texts instead. A password for encrypted files is taken from the variable `PASSWORD`. Times and
//! memory go to standard error.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use reprise_library::models::Shelf;
use reprise_library::{Document, LibraryError, Ocr, PASSAGE_TOKENS, Place, ReadOptions, split};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let is_text = files.first().is_some_and(|first| first.as_os_str() == "--text");
    if is_text {
        files.remove(0);
    }
    if files.is_empty() {
        return Err("name the files to read".into());
    }
    files.sort();
    let ocr = Ocr::on(&Shelf::of_machine()?).map(Arc::new);
    if ocr.is_none() {
        eprintln!("text recognition is not here; get it with: reprise models fetch ocr");
    }
    let mut options = ReadOptions::default().with_ocr(ocr);
    if let Ok(password) = std::env::var("PASSWORD") {
        options = options.with_password(password);
    }
    if !is_text {
        println!("| file | kind | places | characters | passages | notes, or why not |");
        println!("| --- | --- | --- | ---: | ---: | --- |");
    }
    // Models are trained on different cuts; four bytes a token is their usual mean.
    let count = |text: &str| text.len().div_ceil(4);
    for file in files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let begun = Instant::now();
        let read = Document::open_with(&file, &options);
        let seconds = begun.elapsed().as_secs_f64();
        match read {
            Ok(document) if is_text => println!("== {name}\n{}\n", document.text()),
            Ok(document) => {
                let passages = split(&document, PASSAGE_TOKENS, &count).len();
                let characters = document.text().chars().count();
                let kind = document.format;
                let ocr = if document.has_ocr() { ", OCR" } else { "" };
                let notes = document.notes.join("; ").replace('|', "\\|");
                println!(
                    "| {name} | {kind}{ocr} | {} | {characters} | {passages} | {notes} |",
                    places(&document)
                );
            }
            Err(LibraryError::Document { fault, .. }) => println!("| {name} | | | | | {fault} |"),
            Err(error) => println!("| {name} | | | | | {error} |"),
        }
        eprintln!("{name}: {seconds:.2} s");
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        eprintln!("{}", peak.unwrap_or_default());
    }
    Ok(())
}

/// Where the document's last block stands, and on which sheets.
fn places(document: &Document) -> String {
    let mut sheets: Vec<&str> = Vec::new();
    for block in document.blocks() {
        if let Place::Rows {
            sheet: Some(sheet), ..
        } = &block.place
            && sheets.last() != Some(&sheet.as_str())
        {
            sheets.push(sheet);
        }
    }
    let last = document.blocks().last().map(|block| match &block.place {
        Place::Pages { last, .. } => format!("{last} page(s)"),
        Place::Lines { last, .. } => format!("{last} line(s)"),
        Place::Paragraphs { last, .. } => format!("{last} paragraph(s)"),
        Place::Slides { last, .. } => format!("{last} slide(s)"),
        Place::Chapters { last, .. } => format!("{last} chapter(s)"),
        Place::Rows { last, .. } => format!("{last} row(s)"),
    });
    if sheets.is_empty() {
        last.unwrap_or_default()
    } else {
        format!("{} sheet(s)", sheets.len())
    }
}

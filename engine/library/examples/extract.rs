//! Prints what each file gives, as the Markdown table of `docs/documents.md`:
//! `cargo run --release -p reprise-library --example extract -- FILE...`
//!
//! Each file is read by a process of its own, so that time and memory are that file's alone; models for text recognition are loaded
//! in it when they are needed. With `--text` first it prints the texts instead. A password for encrypted files is taken from the
//! variable `PASSWORD`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use reprise_library::models::Shelf;
use reprise_library::{Document, LibraryError, Ocr, PASSAGE_TOKENS, Place, ReadOptions, split};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let mut arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut take = |flag: &str| {
        let is_first = arguments.first().is_some_and(|first| first.as_os_str() == flag);
        if is_first {
            arguments.remove(0);
        }
        is_first
    };
    let (is_text, is_row) = (take("--text"), take("--row"));
    if arguments.is_empty() {
        return Err("name the files to read".into());
    }
    if is_text || is_row {
        let options = options()?;
        for file in &arguments {
            if is_text {
                println!(
                    "== {}\n{}\n",
                    file.display(),
                    Document::open_with(file, &options)?.text()
                );
            } else {
                println!("{}", row(file, &options));
            }
        }
        return Ok(());
    }
    arguments.sort();
    println!("| file | kind | places | characters | passages | s | peak MiB | notes, or why not |");
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |");
    for file in arguments {
        let status = Command::new(std::env::current_exe()?)
            .arg("--row")
            .arg(&file)
            .status()?;
        if !status.success() {
            return Err(format!("reading {} ended the program: {status}", file.display()).into());
        }
    }
    Ok(())
}

fn options() -> Outcome<ReadOptions> {
    let ocr = Ocr::on(&Shelf::of_machine()?).map(Arc::new);
    if ocr.is_none() {
        eprintln!("text recognition is not here; get it with: reprise models fetch ocr");
    }
    let options = ReadOptions::default().with_ocr(ocr);
    Ok(match std::env::var("PASSWORD") {
        Ok(password) => options.with_password(password),
        Err(_) => options,
    })
}

/// Reads a file and tells what it gave in a row of the table.
fn row(file: &Path, options: &ReadOptions) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // Models are trained on different cuts; four bytes a token is their usual mean.
    let count = |text: &str| text.len().div_ceil(4);
    let begun = Instant::now();
    let read = Document::open_with(file, options);
    let seconds = begun.elapsed().as_secs_f64();
    let cost = format!("{seconds:.2} | {}", peak_mib());
    match read {
        Ok(document) => {
            let passages = split(&document, PASSAGE_TOKENS, &count).len();
            let characters = document.text().chars().count();
            let kind = document.format;
            let ocr = if document.has_ocr() { ", OCR" } else { "" };
            let notes = document.notes.join("; ").replace('|', "\\|");
            let places = places(&document);
            format!("| {name} | {kind}{ocr} | {places} | {characters} | {passages} | {cost} | {notes} |")
        }
        Err(LibraryError::Document { fault, .. }) => format!("| {name} | | | | | {cost} | {fault} |"),
        Err(error) => format!("| {name} | | | | | {cost} | {error} |"),
    }
}

/// The most memory this process had, where the system tells.
fn peak_mib() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.split_whitespace().next())
        .and_then(|value| value.parse::<u64>().ok());
    kib.map_or_else(String::new, |kib| (kib >> 10).to_string())
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
        Place::Pages { last, .. } => counted(*last, "page"),
        Place::Lines { last, .. } => counted(*last, "line"),
        Place::Paragraphs { last, .. } => counted(*last, "paragraph"),
        Place::Slides { last, .. } => counted(*last, "slide"),
        Place::Chapters { last, .. } => counted(*last, "chapter"),
        Place::Rows { last, .. } => counted(*last, "row"),
    });
    if sheets.is_empty() {
        last.unwrap_or_default()
    } else {
        counted(sheets.len(), "sheet")
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

//! `reprise models`: what is known by name, where it is, and how to get it.

use std::path::Path;
use std::process::{Command, Stdio};

use reprise_library::Ocr;
use reprise_library::folders;
use reprise_library::models::Shelf;
use reprise_library::models::catalogue::{self, Source};
use reprise_library::system_words;

use crate::arguments::ModelsAction;
use crate::failure::{Failure, Outcome};
use crate::output::{print, with_commas};

/// The set-up's own fetch script, so that an installed `reprise` has it too.
const FETCH: &str = include_str!("../../../models/fetch");

pub fn run(action: ModelsAction) -> Outcome {
    match action {
        ModelsAction::List => list(),
        ModelsAction::Path { name } => print(&format!(
            "{}\n",
            Shelf::of_machine()?.resolve(Some(&name))?.display()
        )),
        ModelsAction::Add { file, name } => add(&file, name),
        ModelsAction::Remove { name } => remove(&name),
        ModelsAction::Tune { model, threads } => {
            crate::tune::run(&Shelf::of_machine()?.resolve(model.as_deref())?, threads)
        }
        ModelsAction::Fetch { name } => fetch(name.as_deref()),
    }
}

fn list() -> Outcome {
    let folder = folders::models()?;
    let shelf = Shelf::of_machine()?;
    let mut rows = vec![["NAME", "SIZE", "WINDOW", "LICENCE", "HERE", "NOTE"].map(String::from)];
    for entry in catalogue::entries()? {
        let here = shelf.file_of(&entry).is_some();
        let tried = if entry.tried { "" } else { " (not tried here)" };
        rows.push([
            entry.name,
            megabytes(entry.size_bytes),
            with_commas(entry.context),
            entry.licence,
            if here { "yes" } else { "no" }.into(),
            format!("{}{tried}", entry.note),
        ]);
    }
    for model in shelf.added()? {
        let size = model.path.metadata().map(|metadata| metadata.len());
        let here = if size.is_ok() { "yes" } else { "gone" }.into();
        let size = size.map(megabytes).unwrap_or_default();
        rows.push([
            model.name,
            size,
            String::new(),
            String::new(),
            here,
            format!("added: {}", folders::shown(&model.path)),
        ]);
    }
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut table = String::new();
    for row in &rows {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        table.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        table.push('\n');
    }
    let ocr = if Ocr::on(&shelf).is_some() {
        "here"
    } else {
        "not here; get it with: reprise models fetch ocr"
    };
    table.push_str(&format!(
        "\nText recognition (OCR) of scans and pictures: {ocr}\n"
    ));
    let files = catalogue::encoder_entries()?;
    let name = files.first().map(|file| file.name.clone()).unwrap_or_default();
    let encoder = match files.iter().all(|file| folder.join(&file.file).is_file()) {
        true => "here".to_owned(),
        false => format!("not here; get it with: reprise models fetch {name}"),
    };
    table.push_str(&format!("\nFinding documents by meaning ({name}): {encoder}\n"));
    table.push_str(&format!("Model folder: {}\n", folders::shown(&folder)));
    print(&table)
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", with_commas((bytes as f64 / 1e6).round() as usize))
}

fn add(file: &Path, name: Option<String>) -> Outcome {
    let name = Shelf::of_machine()?.add(file, name)?;
    print(&format!("added {name}; chat with it: reprise chat -m {name}\n"))
}

fn remove(name: &str) -> Outcome {
    Shelf::of_machine()?.remove(name)?;
    print(&format!("forgot {name}; its file stays where it is\n"))
}

fn fetch(name: Option<&str>) -> Outcome {
    if name == Some(catalogue::OCR) {
        return run_fetch(&["--ocr"]);
    }
    if catalogue::encoder_entries()?
        .iter()
        .any(|entry| Some(entry.name.as_str()) == name)
    {
        return run_fetch(&["--encoder"]);
    }
    let entries = catalogue::entries()?;
    let found = entries
        .iter()
        .find(|entry| name.map_or(entry.default, |name| entry.name == name));
    let Some(entry) = found else {
        let name = name.unwrap_or_default();
        return Err(Failure::message(format!(
            "no model is named {name}; see the names with: reprise models list"
        )));
    };
    let folder = folders::models()?;
    if entry.source == Source::Page || !entry.default {
        let path = folder.join(&entry.file);
        return if path.is_file() {
            print(&format!("{}\n", path.display()))
        } else {
            Err(Shelf::of_machine()?.missing(entry).into())
        };
    }
    run_fetch(&[])
}

/// Runs the set-up's fetch script.
fn run_fetch(arguments: &[&str]) -> Outcome {
    let folder = folders::models()?;
    let scratch = tempfile::tempdir().and_then(|scratch| {
        std::fs::write(scratch.path().join("fetch"), FETCH)?;
        std::fs::write(scratch.path().join("catalogue.toml"), catalogue::TEXT)?;
        Ok(scratch)
    });
    let scratch = scratch.map_err(|error| {
        Failure::message(format!(
            "cannot write to the temporary folder: {}",
            system_words(&error)
        ))
    })?;
    let status = Command::new("python3")
        .arg(scratch.path().join("fetch"))
        .args(arguments)
        .arg("--into")
        .arg(&folder)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| {
            let why = system_words(&error);
            Failure::message(format!(
                "cannot start python3, which fetches the model: {why}; install Python 3 and try again"
            ))
        })?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Told)
    }
}

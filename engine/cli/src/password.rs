//! Passwords of encrypted documents: out of a file, or typed in without being seen. Never out of the command line, which
//! others on the machine can read.

use std::fs;
use std::io::{IsTerminal, stderr, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use reprise_library::{Document, Fault, LibraryError, ReadOptions};

use crate::failure::{Failure, Outcome};
use crate::output::note;

/// How often a person may mistype one.
const ATTEMPTS: usize = 3;

/// Where passwords come from.
#[derive(Debug, Args)]
pub struct PasswordArguments {
    /// A file with the password of encrypted documents in its first line [default: it is asked for]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl PasswordArguments {
    /// The password of a document: out of the file, or as it is typed.
    pub fn password_of(&self, name: &str) -> Outcome<String> {
        match &self.password_file {
            Some(file) => first_line(file),
            None if stdin().is_terminal() && stderr().is_terminal() => ask(name),
            None => Err(Failure::message(format!(
                "{name}: its password can only be asked for in a terminal; give it with --password-file FILE"
            ))),
        }
    }

    /// Reads a document, with its password where it needs one.
    pub fn open(&self, path: &Path, options: &ReadOptions) -> Outcome<Document> {
        let mut opened = Document::open_with(path, options);
        for _ in 0..ATTEMPTS {
            match opened {
                Err(LibraryError::Document {
                    name,
                    fault: fault @ (Fault::PasswordNeeded | Fault::WrongPassword),
                }) => {
                    if fault == Fault::WrongPassword {
                        // Another one cannot come out of the same file.
                        if self.password_file.is_some() {
                            return Err(LibraryError::Document { name, fault }.into());
                        }
                        note("that is not the one that opens it; try again");
                    }
                    let password = self.password_of(&name)?;
                    opened = Document::open_with(path, &options.clone().with_password(password));
                }
                other => return Ok(other?),
            }
        }
        Ok(opened?)
    }
}

fn first_line(file: &Path) -> Outcome<String> {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::message(format!("cannot read {}: {error}", file.display())))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn ask(name: &str) -> Outcome<String> {
    rpassword::prompt_password(format!("Password of {name}: "))
        .map_err(|error| Failure::message(format!("the password could not be read: {error}")))
}

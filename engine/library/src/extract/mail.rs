//! Mails (eml): who wrote to whom and when, then the body. Attachments are named and not read.

use mail_parser::{Address, MessageParser, MimeHeaders};

use super::draft::Draft;
use super::guard::Watch;
use super::html;
use crate::error::Fault;
use crate::place::Place;

pub(super) const KIND: &str = "a mail";
/// How many names or attachments are told.
const NAMES: usize = 20;

/// Whether a text begins like a mail: header lines that mails have, up to a blank line.
pub(super) fn looks_like(text: &str) -> bool {
    const OPENING: &[&str] = &[
        "received:",
        "return-path:",
        "delivered-to:",
        "mime-version:",
        "message-id:",
        "from:",
        "to:",
        "subject:",
        "date:",
        "x-",
    ];
    let head: Vec<String> = text
        .lines()
        .take(200)
        .take_while(|line| !line.trim().is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let has = |name: &str| head.iter().any(|line| line.starts_with(name));
    head.first()
        .is_some_and(|first| OPENING.iter().any(|name| first.starts_with(name)))
        && has("from:")
        && (has("date:") || has("message-id:"))
        && (has("subject:") || has("to:"))
}

pub(super) fn read(bytes: &[u8], watch: &Watch) -> Result<Draft, Fault> {
    let message = MessageParser::default()
        .parse(bytes)
        .ok_or_else(|| Fault::Broken {
            kind: KIND.into(),
            why: "it has no header".into(),
        })?;
    watch.check()?;
    let mut draft = Draft::new();
    let mut number = 0;
    let mut next = || {
        number += 1;
        Place::paragraph(number)
    };
    if let Some(subject) = message.subject() {
        draft.heading(1, subject, next())?;
    }
    let mut lines = Vec::new();
    for (label, address) in [
        ("From", message.from()),
        ("To", message.to()),
        ("Cc", message.cc()),
    ] {
        let people = address.map(people).unwrap_or_default();
        if !people.is_empty() {
            lines.push(format!("{label}: {people}"));
        }
    }
    if let Some(date) = message.date() {
        lines.push(format!("Date: {}", date.to_rfc3339()));
    }
    draft.block(&lines.join("\n"), next())?;
    let is_html = message.text_body_count() == 0
        || message
            .text_part(0)
            .is_some_and(mail_parser::MessagePart::is_text_html);
    if is_html && let Some(page) = message.body_html(0) {
        for paragraph in html::read(&page)?.paragraphs() {
            draft.block(paragraph, next())?;
        }
    } else if let Some(body) = message.body_text(0) {
        let body = body.replace("\r\n", "\n");
        for paragraph in body.split("\n\n") {
            if !paragraph.trim().is_empty() {
                draft.block(paragraph, next())?;
            }
        }
    }
    let attached: Vec<String> = message
        .attachments()
        .take(NAMES)
        .map(|part| part.attachment_name().unwrap_or("without a name").to_string())
        .collect();
    if !attached.is_empty() {
        draft.note(format!(
            "attachments are not read: {}; save them and add them as files",
            attached.join(", ")
        ));
    }
    Ok(draft)
}

fn people(address: &Address<'_>) -> String {
    address
        .iter()
        .take(NAMES)
        .map(|person| match (person.name(), person.address()) {
            (Some(name), Some(address)) => format!("{name} <{address}>"),
            (name, address) => name.or(address).unwrap_or_default().to_string(),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

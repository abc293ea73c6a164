//! Prompts in stretches of one owner each. A message may consist of parts (a passage, another passage, the question);
//! every part is tokenised on its own, so the same part has the same tokens wherever it stands and its KV can be used
//! again. What the template writes around the parts forms stretches of its own.

use super::{ChatTemplate, Masked, Role, TemplateError, TemplateOptions, missing_bos};
use crate::tokenizer::{Specials, TokenId, Tokenizer};

/// A message made of parts; its content is all of them, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartedMessage<'a> {
    /// Who says it.
    pub role: Role,
    /// What it says: always text.
    pub parts: &'a [&'a str],
}

/// Whose words a stretch of a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// What the template writes around messages (and white space at a message's ends, which templates may cut off).
    Template,
    /// A part of a message, both counted from 0.
    Part {
        /// Index of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
    },
}

/// A run of tokens with one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Whose words they are.
    pub owner: Owner,
    /// At least one token.
    pub ids: Vec<TokenId>,
}

impl ChatTemplate {
    /// The prompt in stretches: each part's tokens are those of `Tokenizer::encode` for its text alone (SentencePiece
    /// models add no space in front inside a prompt). As safe as [`ChatTemplate::encode`]; the ids differ from it only
    /// where a token would have spanned two stretches. Order and number of the stretches are the template's choice: it
    /// may move, drop or repeat a message.
    ///
    /// # Errors
    /// When the template refuses the messages or fails.
    pub fn encode_parts(
        &self,
        tokenizer: &Tokenizer,
        messages: &[PartedMessage<'_>],
        options: &TemplateOptions,
    ) -> Result<Vec<Stretch>, TemplateError> {
        let owners: Vec<Owner> = messages
            .iter()
            .enumerate()
            .flat_map(|(message, parted)| {
                (0..parted.parts.len()).map(move |part| Owner::Part { message, part })
            })
            .collect();
        let parts: Vec<&str> = messages
            .iter()
            .flat_map(|message| message.parts.iter().copied())
            .collect();
        let Masked {
            texts: masked,
            masks,
            tools,
        } = self.masked(tokenizer, &parts, options)?;
        let [open, close] = masks.marks;

        let mut numbered = masked.iter().enumerate();
        let contents: Vec<String> = messages
            .iter()
            .map(|message| mark(&mut numbered.by_ref().take(message.parts.len()), [open, close]))
            .collect();
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        let roles = messages.iter().map(|message| message.role);
        let prompt = self.render_with(tokenizer, roles, &contents, tools, options)?;

        let mut stretches: Vec<Stretch> = Vec::new();
        let unmask = |text: &str| masks.unmask(text);
        let mut owner = Owner::Template;
        for (index, piece) in prompt.split(open).enumerate() {
            // After the first, each piece begins with the number of the part that follows (none: the template).
            let (number, text) = match index {
                0 => ("", piece),
                _ => piece.split_once(close).unwrap_or(("", piece)),
            };
            if index > 0 {
                owner = number
                    .parse()
                    .ok()
                    .and_then(|part: usize| owners.get(part).copied())
                    .unwrap_or(Owner::Template);
            }
            let specials = match owner {
                Owner::Template => Specials::Parse,
                Owner::Part { .. } => Specials::AsText,
            };
            let mut ids = Vec::with_capacity(text.len() / 3);
            tokenizer.encode_stretch(text, specials, index == 0, &unmask, &mut ids);
            match stretches.last_mut() {
                Some(last) if last.owner == owner => last.ids.extend(ids),
                _ if ids.is_empty() => {}
                _ => stretches.push(Stretch { owner, ids }),
            }
        }
        let first = stretches.first().and_then(|stretch| stretch.ids.first());
        if let Some(bos) = missing_bos(tokenizer, first) {
            match stretches.first_mut() {
                Some(Stretch {
                    owner: Owner::Template,
                    ids,
                }) => ids.insert(0, bos),
                _ => stretches.insert(
                    0,
                    Stretch {
                        owner: Owner::Template,
                        ids: vec![bos],
                    },
                ),
            }
        }
        Ok(stretches)
    }
}

/// Joins a message's parts with marks between them: `open number close` before a part, `open close` after the last.
/// White space at the message's ends stays outside, so that a template that trims still finds it.
fn mark(parts: &mut dyn Iterator<Item = (usize, &String)>, [open, close]: [char; 2]) -> String {
    let parts: Vec<(usize, &str)> = parts.map(|(number, text)| (number, text.as_str())).collect();
    let mut content = String::new();
    let Some(last) = parts.iter().rposition(|(_, text)| !text.trim().is_empty()) else {
        return parts.iter().map(|&(_, text)| text).collect();
    };
    let mut is_lead = true;
    for (index, &(number, text)) in parts.iter().enumerate() {
        if index > last || (is_lead && text.trim().is_empty()) {
            content.push_str(text);
            continue;
        }
        let body_at = if is_lead {
            text.len() - text.trim_start().len()
        } else {
            0
        };
        let body_end = if index == last {
            text.trim_end().len()
        } else {
            text.len()
        };
        is_lead = false;
        content.push_str(text.get(..body_at).unwrap_or_default());
        content.push_str(&format!("{open}{number}{close}"));
        content.push_str(text.get(body_at..body_end).unwrap_or_default());
        if index == last {
            content.extend([open, close]);
        }
        content.push_str(text.get(body_end..).unwrap_or_default());
    }
    content
}

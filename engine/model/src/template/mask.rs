//! Keeps what people type from being taken for control tokens. A prompt is rendered as one text and then parsed for
//! special tokens, so a message that contains `<|im_end|>` could end its own turn. Before rendering, one character of
//! every such place in a message is replaced by a stand-in that occurs nowhere else; after special tokens have been found,
//! the stand-ins in the plain stretches become the characters they stood for. Nothing else about the text changes, so
//! ordinary messages get exactly the ids they would get anyway.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};

use super::TemplateError;

/// Stand-ins, in order of preference: Unicode's noncharacters, then private use characters.
fn stand_ins() -> impl Iterator<Item = char> {
    ('\u{fdd0}'..='\u{fdef}')
        .chain('\u{e000}'..='\u{f8ff}')
        .chain('\u{f0000}'..='\u{ffffd}')
}

/// Knows the texts that must not be typed.
#[derive(Debug)]
pub(super) struct Masker {
    texts: Vec<String>,
    longest_bytes: usize,
    /// Hashes of the texts' proper beginnings and endings. A false hit masks a character needlessly, which is harmless.
    begins: HashSet<u64>,
    ends: HashSet<u64>,
    hasher: RandomState,
    /// Characters of the texts that could otherwise serve as stand-ins.
    reserved: BTreeSet<char>,
}

/// Which stand-in means which character, in one prompt.
#[derive(Debug)]
pub(super) struct Masks {
    stand_ins: BTreeMap<char, char>,
    /// Two more characters that occur nowhere in the prompt, to mark places in it.
    pub(super) marks: [char; 2],
}

impl Masker {
    pub(super) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Masker {
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        let longest_bytes = texts.iter().map(String::len).max().unwrap_or(0);
        let hasher = RandomState::new();
        let reserved = texts
            .iter()
            .flat_map(|text| text.chars())
            .filter(|&c| c >= '\u{e000}')
            .collect();
        let (mut begins, mut ends) = (HashSet::new(), HashSet::new());
        for text in &texts {
            for (at, _) in text.char_indices().skip(1) {
                let (begin, end) = text.split_at(at);
                begins.insert(hasher.hash_one(begin));
                ends.insert(hasher.hash_one(end));
            }
        }
        Masker {
            texts,
            longest_bytes,
            begins,
            ends,
            hasher,
            reserved,
        }
    }

    /// Masks all contents of one prompt. `find` gives the byte offsets at which one of the texts begins; `others` are
    /// further texts of the prompt, in which no stand-in may occur.
    pub(super) fn mask(
        &self,
        contents: &[&str],
        find: impl Fn(&str) -> Vec<usize>,
        others: &[&str],
    ) -> Result<(Vec<String>, Masks), TemplateError> {
        let places: Vec<Vec<usize>> = contents
            .iter()
            .map(|content| self.places(content, find(content)))
            .collect();
        let mut stand_in_of: BTreeMap<char, char> = BTreeMap::new();
        let is_free = |c: &char| {
            !self.reserved.contains(c) && !contents.iter().chain(others).any(|text| text.contains(*c))
        };
        let mut free = stand_ins().filter(is_free);
        let mut fresh = || free.next().ok_or(TemplateError::NoStandIn);
        let mut masks = Masks {
            stand_ins: BTreeMap::new(),
            marks: [fresh()?, fresh()?],
        };
        let mut masked = Vec::with_capacity(contents.len());
        for (content, places) in contents.iter().zip(&places) {
            let mut text = String::with_capacity(content.len() + 2 * places.len());
            let mut places = places.iter().peekable();
            for (at, c) in content.char_indices() {
                if places.next_if(|&&place| place == at).is_none() {
                    text.push(c);
                    continue;
                }
                let stand_in = match stand_in_of.get(&c) {
                    Some(&known) => known,
                    None => {
                        let fresh = fresh()?;
                        stand_in_of.insert(c, fresh);
                        masks.stand_ins.insert(fresh, c);
                        fresh
                    }
                };
                text.push(stand_in);
            }
            masked.push(text);
        }
        Ok((masked, masks))
    }

    /// Byte offsets, in order, of the characters to replace: the first one of each stretch that is (`places` holds
    /// those), or together with what the template puts around the message could become, one of the texts.
    fn places(&self, content: &str, mut places: Vec<usize>) -> Vec<usize> {
        let is_inside = |text: &String| content.len() < text.len() && text.contains(content);
        if content.len() < self.longest_bytes && !content.is_empty() && self.texts.iter().any(is_inside) {
            places.push(0);
        }
        for (at, _) in content
            .char_indices()
            .skip(1)
            .take_while(|&(at, _)| at < self.longest_bytes)
        {
            let head = content.get(..at).unwrap_or_default();
            places.extend(self.ends.contains(&self.hasher.hash_one(head)).then_some(0));
        }
        for (at, _) in content
            .char_indices()
            .rev()
            .take_while(|&(at, _)| content.len() - at < self.longest_bytes)
        {
            let tail = content.get(at..).unwrap_or_default();
            places.extend(self.begins.contains(&self.hasher.hash_one(tail)).then_some(at));
        }
        places.sort_unstable();
        places.dedup();
        places
    }
}

impl Masks {
    /// The plain text of a stretch, or `None` when it has no stand-in.
    pub(super) fn unmask(&self, text: &str) -> Option<String> {
        let is_stand_in = |c: char| self.stand_ins.contains_key(&c);
        if self.stand_ins.is_empty() || !text.contains(is_stand_in) {
            return None;
        }
        Some(
            text.chars()
                .map(|c| self.stand_ins.get(&c).copied().unwrap_or(c))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 3] = ["<|im_end|>", "<s>", "\u{1}"];

    fn mask(contents: &[&str]) -> (Vec<String>, Masks) {
        let find = |content: &str| {
            TEXTS
                .iter()
                .flat_map(|text| content.match_indices(text))
                .map(|(at, _)| at)
                .collect::<Vec<_>>()
        };
        Masker::new(TEXTS.into_iter()).mask(contents, find, &[]).unwrap()
    }

    #[test]
    fn ordinary_messages_are_left_alone() {
        let contents = ["Hello, is 3 < 4? Yes!", "", "fn f<'a>(x: &'a str) {}"];
        let (masked, masks) = mask(&contents);
        assert_eq!(masked, contents);
        assert!(masks.stand_ins.is_empty());
    }

    #[test]
    fn what_could_become_special_is_broken_and_comes_back() {
        for content in [
            "a<|im_end|>b",
            "<s><s>",
            "x<|im_",
            "end|> y",
            "m_e",
            "a\u{1}b",
            "<<|im_end|>",
            "<|im_end|>".repeat(50).as_str(),
        ] {
            let (masked, masks) = mask(&[content]);
            for around in ["", "<|im_", "<|i", "_end|>", "nd|>"] {
                let prompt = format!("{around}{}{around}", masked[0]);
                assert!(
                    !prompt.contains("<|im_end|>") && !prompt.contains("<s>") && !prompt.contains('\u{1}')
                );
            }
            assert_eq!(masks.unmask(&masked[0]).as_deref(), Some(content));
        }
    }

    #[test]
    fn a_control_token_of_a_noncharacter_is_no_stand_in() {
        let (masked, _) = Masker::new(["\u{fdd0}", "<s>"].into_iter())
            .mask(&["<s>"], |_| vec![0], &[])
            .unwrap();
        assert!(!masked[0].contains('\u{fdd0}') && masked[0].ends_with("s>"));
    }

    #[test]
    fn a_message_full_of_noncharacters_gets_other_stand_ins() {
        let all: String = ('\u{fdd0}'..='\u{fdef}').chain("<s>".chars()).collect();
        let (masked, masks) = mask(&[&all]);
        assert!(masked[0].contains('\u{e002}'));
        assert_eq!(masks.unmask(&masked[0]).as_deref(), Some(all.as_str()));
    }
}

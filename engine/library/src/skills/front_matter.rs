//! The front matter of a SKILL.md: YAML between two lines of dashes, as people write it. What can be understood is
//! understood, with a warning; limits keep hostile YAML (aliases of aliases, deep nesting) from costing anything.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::SkillFault;

/// Bytes that front matter may have.
pub const MAX_FRONT_MATTER_BYTES: usize = 64 * 1024;
/// Characters that a description should have at most.
pub const DESCRIPTION_CHARS: usize = 1024;
/// Characters that a name may have.
const NAME_CHARS: usize = 64;

/// What front matter says, as far as it is understood.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrontMatter {
    /// The name, where a usable one is given.
    pub name: Option<String>,
    /// What it is for, in one paragraph; empty where nothing is said.
    pub description: String,
    /// Under which licence.
    pub license: Option<String>,
    /// What it needs.
    pub compatibility: Option<String>,
    /// Tools it expects.
    pub allowed_tools: Vec<String>,
    /// Anything else.
    pub metadata: BTreeMap<String, String>,
    /// What is odd about it.
    pub warnings: Vec<String>,
}

/// Whether a text is a name by the convention.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_CHARS).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Cuts a SKILL.md, as text with plain line ends, into front matter (if there is any) and body.
pub fn cut(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.trim_start_matches('\n').strip_prefix("---") else {
        return (None, text);
    };
    let Some((dashes, rest)) = rest.split_once('\n') else {
        return (None, text);
    };
    if !dashes.trim().is_empty() {
        return (None, text);
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            let body = rest.get(at + line.len()..).unwrap_or_default();
            return (rest.get(..at), body.trim_start_matches('\n'));
        }
        at += line.len();
    }
    (None, text)
}

/// Reads front matter.
///
/// # Errors
/// When it is no YAML, even with its usual mistakes mended.
pub fn parse(yaml: &str) -> Result<FrontMatter, SkillFault> {
    if yaml.len() > MAX_FRONT_MATTER_BYTES {
        return Err(SkillFault::TooLarge {
            bytes: yaml.len() as u64,
            limit_bytes: MAX_FRONT_MATTER_BYTES as u64,
        });
    }
    let mut found = FrontMatter::default();
    let mut text = std::borrow::Cow::Borrowed(yaml);
    if text.contains('\t') {
        found
            .warnings
            .push("its front matter has tabs; they count as two spaces".into());
        text = text.replace('\t', "  ").into();
    }
    let value = match read(&text) {
        Ok(value) => value,
        Err(error) => {
            let mended = quoted(&text);
            let value = read(&mended).map_err(|_| SkillFault::BadYaml(first_line(&error.to_string())))?;
            found.warnings.push(
                "its front matter is not YAML as it stands; values with a colon or the like were taken as plain text, \
                 put them in quotes"
                    .into(),
            );
            value
        }
    };
    let Value::Object(fields) = value else {
        return Err(SkillFault::BadYaml("it is not a list of names and values".into()));
    };
    for (key, value) in fields {
        match key.as_str() {
            "name" => found.take_name(&words(&value)),
            "description" => found.description = words(&value),
            "license" => found.license = some(words(&value)),
            "compatibility" => found.compatibility = some(words(&value)),
            "allowed-tools" => found.allowed_tools = list(&value),
            "metadata" => match value {
                Value::Object(fields) => {
                    found.metadata = fields
                        .iter()
                        .map(|(key, value)| (key.clone(), words(value)))
                        .collect();
                }
                Value::Null => {}
                _ => found
                    .warnings
                    .push("its metadata is not a list of names and values; it is left out".into()),
            },
            other => {
                let other: String = other.chars().take(NAME_CHARS).collect();
                found.warnings.push(format!(
                    "its front matter has an unknown key {other:?}; it is left out"
                ));
            }
        }
    }
    let characters = found.description.chars().count();
    if characters > DESCRIPTION_CHARS {
        found.warnings.push(format!(
            "its description has {characters} characters, more than {DESCRIPTION_CHARS}; the rest is left out"
        ));
        found.description = found.description.chars().take(DESCRIPTION_CHARS).collect();
    }
    Ok(found)
}

impl FrontMatter {
    fn take_name(&mut self, name: &str) {
        let plain = name.trim().to_lowercase().replace([' ', '_'], "-");
        if is_name(name) {
            self.name = Some(name.to_owned());
        } else if is_name(&plain) {
            self.warnings
                .push(format!("its name {name:?} was taken as {plain}"));
            self.name = Some(plain);
        } else {
            let name: String = name.chars().take(NAME_CHARS).collect();
            self.warnings
                .push(format!("{name:?} is no name for a skill; the folder's is taken"));
        }
    }
}

/// Reads YAML within limits that no honest front matter reaches.
pub(super) fn read(yaml: &str) -> Result<Value, serde_saphyr::Error> {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_events = 4_000;
    budget.max_nodes = 2_000;
    budget.max_depth = 16;
    budget.max_documents = 1;
    budget.max_aliases = 16;
    budget.max_anchors = 16;
    budget.max_merge_keys = 16;
    budget.max_total_scalar_bytes = 2 * MAX_FRONT_MATTER_BYTES;
    let mut options = serde_saphyr::Options::default();
    options.budget = Some(budget);
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::FirstWins;
    serde_saphyr::from_str_with_options(yaml, options)
}

/// The same with sentences in quotes: most people do not know that `a: b: c` is no YAML.
fn quoted(yaml: &str) -> String {
    const SENTENCES: [&str; 4] = ["name", "description", "license", "compatibility"];
    let mut out = String::with_capacity(yaml.len() + 16);
    for line in yaml.lines() {
        let plain = line.split_once(": ").filter(|(key, value)| {
            let value = value.trim();
            SENTENCES.contains(key) && !value.is_empty() && !value.starts_with(['"', '\'', '|', '>'])
        });
        match plain {
            Some((key, value)) => out.push_str(&format!("{key}: '{}'\n", value.trim().replace('\'', "''"))),
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// A value as text on one line.
fn words(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A value as a list: written as one, or with commas or spaces between.
fn list(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(words).filter(|item| !item.is_empty()).collect(),
        other => words(other)
            .split([',', ' '])
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect(),
    }
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_write_is_understood_and_what_is_odd_is_said() {
        let found = parse(
            "name: Tidy Notes\ndescription: Use this: when notes are a mess\nlicense: MIT\nallowed-tools: Read, Bash\n\
             metadata:\n  author: somebody\nversion: 2\n",
        )
        .unwrap();
        assert_eq!(found.name.as_deref(), Some("tidy-notes"));
        assert_eq!(found.description, "Use this: when notes are a mess");
        assert_eq!(found.allowed_tools, ["Read", "Bash"]);
        assert_eq!(found.metadata["author"], "somebody");
        assert_eq!(found.warnings.len(), 3, "{:?}", found.warnings);

        let found = parse("name: x\ndescription: >\n  two\n  lines\n").unwrap();
        assert_eq!(found.description, "two lines");
        assert!(found.warnings.is_empty());

        let found = parse("name:\tx\ndescription: y\n").unwrap();
        assert_eq!(found.name.as_deref(), Some("x"));
        assert_eq!(found.warnings.len(), 1);
    }

    #[test]
    fn a_long_description_is_cut_and_a_wrong_name_left_out() {
        let found = parse(&format!("name: ../../x\ndescription: {}\n", "word ".repeat(400))).unwrap();
        assert_eq!(found.name, None);
        assert_eq!(found.description.chars().count(), DESCRIPTION_CHARS);
        assert_eq!(found.warnings.len(), 2);
    }

    #[test]
    fn hostile_yaml_is_refused_at_no_cost() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", "));
        }
        bomb += "name: x\ndescription: y\n";
        assert!(
            matches!(parse(&bomb), Err(SkillFault::BadYaml(_))),
            "{:?}",
            parse(&bomb)
        );
        let deep = format!("description: {}x{}\n", "[".repeat(5_000), "]".repeat(5_000));
        assert!(matches!(parse(&deep), Err(SkillFault::BadYaml(_)) | Ok(_)));
        let long = format!("description: {}\n", "x".repeat(MAX_FRONT_MATTER_BYTES));
        assert!(matches!(parse(&long), Err(SkillFault::TooLarge { .. })));
        assert!(parse("- a\n- b\n").is_err());
    }

    #[test]
    fn front_matter_stands_between_dashes_at_the_beginning() {
        assert_eq!(
            cut("---\na: b\n---\n\nbody\n---\n"),
            (Some("a: b\n"), "body\n---\n")
        );
        assert_eq!(cut("---\n---\nbody"), (Some(""), "body"));
        assert_eq!(cut("# Title\n---\n"), (None, "# Title\n---\n"));
        assert_eq!(cut("---\nno end\n"), (None, "---\nno end\n"));
        assert_eq!(cut("----\na\n---\n"), (None, "----\na\n---\n"));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "[ -~\n\t:&*\\[\\]{}'\"|>#-]{0,200}") {
            let text: String = text;
            let _ = parse(&text);
            let (front, body) = cut(&text);
            prop_assert!(front.unwrap_or_default().len() + body.len() <= text.len());
        }
    }
}

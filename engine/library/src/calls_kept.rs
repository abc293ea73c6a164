//! Calls of tools and what they came to, as they are kept with the answer that was made with them, so that later prompts have
//! them in their place.

use reprise_engine::SegmentKind;
use reprise_model::template::Role;

use crate::assistant::{Message, Part};
use crate::chats::{Given, Origin};
use crate::skills::SKILL_OWNER;

/// What stood between a question and its answer, to be kept with the answer.
pub(crate) fn kept(between: &[Message]) -> Vec<Given> {
    let mut results = 0;
    let mut kept = Vec::new();
    for message in between {
        if message.role != Role::Tool {
            kept.push(Given {
                label: "call".into(),
                text: message.text(),
                source: Origin::Call,
            });
            continue;
        }
        for part in &message.parts {
            kept.push(Given {
                label: "result".into(),
                text: part.text.clone(),
                source: Origin::Result {
                    number: results,
                    skill: skill_of(part),
                },
            });
        }
        results += 1;
    }
    kept
}

fn skill_of(part: &Part) -> Option<String> {
    let owner = part.owner.as_ref().filter(|_| part.kind == SegmentKind::Skill)?;
    (owner.kind() == SKILL_OWNER).then(|| owner.name().to_owned())
}

/// The messages that what was kept of an answer stands for.
pub(crate) fn messages<'a>(given: impl Iterator<Item = &'a Given>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let mut last = None;
    for one in given {
        match (&one.source, messages.last_mut()) {
            (Origin::Result { number, .. }, Some(result)) if last == Some(*number) => {
                result.parts.push(one.part());
            }
            (Origin::Result { number, .. }, _) => {
                last = Some(*number);
                messages.push(Message {
                    role: Role::Tool,
                    parts: vec![one.part()],
                });
            }
            (Origin::Call, _) => messages.push(Message::new(Role::Assistant, one.text.as_str())),
            _ => {}
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_engine::Owner;

    #[test]
    fn calls_and_results_come_back_as_they_were() {
        let skill = Part {
            text: "# Skill: tidy\n".into(),
            kind: SegmentKind::Skill,
            owner: Owner::new(SKILL_OWNER, "tidy").ok(),
        };
        let between = [
            Message::new(Role::Assistant, "two calls"),
            Message {
                role: Role::Tool,
                parts: vec![skill, "and more".into()],
            },
            Message::new(Role::Tool, "second"),
            Message::new(Role::Assistant, "one call"),
            Message::new(Role::Tool, "third"),
        ];
        assert_eq!(messages(kept(&between).iter()), between);
        assert!(kept(&[]).is_empty());
    }
}

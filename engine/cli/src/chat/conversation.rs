//! The turns of a chat: a system text, then questions and answers in turn, the oldest of which may no longer be shown
//! to the model.

use reprise_model::template::Role;

use reprise_library::assistant::{Message, Part};
use reprise_library::chats::Given;

#[derive(Default)]
pub struct Conversation {
    system: Option<String>,
    /// Skills that stand before all turns.
    skills: Vec<Part>,
    turns: Vec<Turn>,
    /// Turns at the beginning that the model no longer sees.
    hidden: usize,
}

struct Turn {
    /// A skill that the question is asked with.
    skill: Vec<Part>,
    /// Passages that it is to be answered from.
    given: Vec<Given>,
    question: String,
    /// Calls of tools and their results, before the answer.
    between: Vec<Message>,
    answer: Option<String>,
    /// How often the answer was made anew.
    attempt: u64,
}

impl Conversation {
    pub fn new(system: Option<String>) -> Conversation {
        Conversation {
            system,
            ..Conversation::default()
        }
    }

    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    pub fn set_system(&mut self, text: String) {
        self.system = Some(text);
    }

    /// Gives the model a skill for the whole chat.
    pub fn add_skill(&mut self, parts: Vec<Part>) {
        self.skills.extend(parts);
    }

    /// Forgets the turns; the system text stays.
    pub fn clear(&mut self) {
        self.turns.clear();
        self.hidden = 0;
    }

    /// Asks something, with a skill where there is one.
    pub fn ask(&mut self, skill: Vec<Part>, question: String) {
        self.turns.push(Turn {
            skill,
            given: Vec::new(),
            question,
            between: Vec::new(),
            answer: None,
            attempt: 0,
        });
    }

    pub fn answered(&mut self, text: &str, between: Vec<Message>) {
        if let Some(turn) = self.turns.last_mut() {
            turn.between = between;
            turn.answer = Some(text.to_string());
        }
    }

    /// Takes the last answer back, to make another; false when there is none.
    pub fn take_back_answer(&mut self) -> bool {
        match self.turns.last_mut() {
            Some(turn) if turn.answer.is_some() => {
                turn.answer = None;
                turn.between.clear();
                turn.attempt += 1;
                true
            }
            _ => false,
        }
    }

    /// Takes back a question that could not be answered.
    pub fn take_back_question(&mut self) {
        if self.turns.last().is_some_and(|turn| turn.answer.is_none()) {
            self.turns.pop();
            self.hidden = self.hidden.min(self.turns.len());
        }
    }

    /// The last question.
    pub fn question(&self) -> Option<&str> {
        self.turns.last().map(|turn| turn.question.as_str())
    }

    /// Gives the last question passages to be answered from, in place of those it had.
    pub fn give(&mut self, given: Vec<Given>) {
        if let Some(turn) = self.turns.last_mut() {
            turn.given = given;
        }
    }

    /// What the questions before the last one were given, as far as the model sees them.
    pub fn given_before(&self) -> Vec<Given> {
        let seen = &self.turns[self.hidden..];
        let before = seen.split_last().map_or(seen, |(_, before)| before);
        before
            .iter()
            .flat_map(|turn| turn.given.iter().cloned())
            .collect()
    }

    /// What all questions that the model sees were given.
    pub fn given(&self) -> Vec<Given> {
        let seen = self.turns[self.hidden..].iter();
        seen.flat_map(|turn| turn.given.iter().cloned()).collect()
    }

    /// How often the last answer was made anew.
    pub fn attempt(&self) -> u64 {
        self.turns.last().map_or(0, |turn| turn.attempt)
    }

    /// Hides the oldest turn from the model; false when only the last one is left.
    pub fn drop_oldest_turn(&mut self) -> bool {
        let can = self.hidden + 1 < self.turns.len();
        self.hidden += usize::from(can);
        can
    }

    /// Turns that the model no longer sees.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// Shows the model all turns but the first `hidden` again, as before something failed.
    pub fn hide_only(&mut self, hidden: usize) {
        self.hidden = hidden;
    }

    /// What the model sees.
    pub fn messages(&self) -> Vec<Message> {
        let message = |role, text: &String| Message::new(role, text);
        let mut messages = Vec::new();
        let mut system: Vec<Part> = self.system.iter().map(|text| Part::from(text.as_str())).collect();
        for part in &self.skills {
            if !system.is_empty() {
                system.push("\n\n".into());
            }
            system.push(part.clone());
        }
        if !system.is_empty() {
            messages.push(Message {
                role: Role::System,
                parts: system,
            });
        }
        for turn in &self.turns[self.hidden..] {
            let mut question = turn.skill.clone();
            if !question.is_empty() {
                question.push("\n".into());
            }
            let asked = match turn.given.is_empty() {
                true => turn.question.clone(),
                // As `reprise ask` has it.
                false => format!("Question: {}", turn.question),
            };
            question.extend(turn.given.iter().map(Given::part));
            question.push(asked.as_str().into());
            messages.push(Message {
                role: Role::User,
                parts: question,
            });
            messages.extend(turn.between.iter().cloned());
            messages.extend(turn.answer.iter().map(|text| message(Role::Assistant, text)));
        }
        messages
    }

    /// The whole chat as Markdown.
    pub fn transcript(&self, model: &str) -> String {
        let mut text = format!("# Chat with {model}\n");
        if let Some(system) = &self.system {
            text.push_str(&format!("\n## System\n\n{}\n", system.trim()));
        }
        for turn in &self.turns {
            text.push_str(&format!("\n## You\n\n{}\n", turn.question.trim()));
            for message in &turn.between {
                let who = if message.role == Role::Tool {
                    "Result"
                } else {
                    "Call"
                };
                text.push_str(&format!("\n### {who}\n\n{}\n", message.text().trim()));
            }
            if let Some(answer) = &turn.answer {
                text.push_str(&format!("\n## {model}\n\n{}\n", answer.trim()));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(conversation: &Conversation) -> Vec<String> {
        conversation
            .messages()
            .into_iter()
            .map(|message| message.text())
            .collect()
    }

    #[test]
    fn the_oldest_turns_are_hidden_whole_and_the_last_one_never() {
        let mut chat = Conversation::new(Some("s".into()));
        for (question, answer) in [("q1", "a1"), ("q2", "a2")] {
            chat.ask(Vec::new(), question.into());
            chat.answered(answer, Vec::new());
        }
        chat.ask(Vec::new(), "q3".into());
        assert!(chat.drop_oldest_turn());
        assert_eq!(seen(&chat), ["s", "q2", "a2", "q3"]);
        assert!(chat.drop_oldest_turn());
        assert!(!chat.drop_oldest_turn());
        assert_eq!(seen(&chat), ["s", "q3"]);
        assert!(
            chat.transcript("m").contains("q1"),
            "what the model no longer sees is still part of the chat"
        );
        chat.take_back_question();
        assert_eq!(seen(&chat), ["s"]);
    }

    #[test]
    fn an_answer_is_made_anew_from_the_same_question() {
        let mut chat = Conversation::new(None);
        assert!(!chat.take_back_answer());
        chat.ask(Vec::new(), "q".into());
        chat.answered("a", Vec::new());
        assert!(chat.take_back_answer());
        assert_eq!((seen(&chat), chat.attempt()), (vec!["q".to_string()], 1));
    }
}

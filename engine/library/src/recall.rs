//! Earlier exchanges of a chat that no longer fit into its prompt, found again by what is asked now.

use crate::chats::{Given, Origin, Role, Turn};
use crate::select::rank_texts;
use crate::{Document, LibraryError, PASSAGE_TOKENS, TokenCounter, split};

/// Most pieces of earlier exchanges that a question is given.
const MOST_PIECES: usize = 4;

/// The pieces of `hidden` turns that answer to a question, best first as far as they fit, then in the order in which they
/// were said.
///
/// # Errors
/// When they cannot be searched.
pub fn recall(
    hidden: &[Turn],
    question: &str,
    budget_tokens: usize,
    count: TokenCounter<'_>,
) -> Result<Vec<Given>, LibraryError> {
    let mut pieces: Vec<Given> = Vec::new();
    for exchange in hidden.chunk_by(|_, next| next.role != Role::User) {
        let Some(first) = exchange.first() else { continue };
        let said: Vec<String> = exchange
            .iter()
            .filter(|turn| !turn.text.trim().is_empty())
            .map(|turn| match turn.role {
                Role::User => format!("User: {}", turn.text.trim()),
                Role::Assistant => format!("Assistant: {}", turn.text.trim()),
            })
            .collect();
        if said.is_empty() {
            continue;
        }
        let exchange = Document::from_bytes("earlier.txt", said.join("\n\n").as_bytes())?;
        for passage in split(&exchange, PASSAGE_TOKENS, count) {
            pieces.push(Given {
                label: "earlier in this chat".into(),
                text: format!("[earlier in this chat]\n{}\n\n", passage.text),
                source: Origin::Earlier { turn: first.id },
            });
        }
    }
    let texts: Vec<Vec<&str>> = pieces.iter().map(|piece| vec![piece.text.as_str()]).collect();
    let mut left = budget_tokens;
    let mut chosen: Vec<usize> = rank_texts(question, &texts)?
        .into_iter()
        .filter(|&index| {
            let tokens = count(&pieces[index].text);
            let fits = tokens <= left;
            left -= if fits { tokens } else { 0 };
            fits
        })
        .take(MOST_PIECES)
        .collect();
    chosen.sort_unstable();
    Ok(chosen.into_iter().map(|index| pieces[index].clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chats::{Branch, ChatId, TurnId, TurnState};

    fn turn(id: i64, role: Role, text: &str) -> Turn {
        Turn {
            id: TurnId(id),
            chat: ChatId(1),
            parent: (id > 1).then_some(TurnId(id - 1)),
            role,
            text: text.into(),
            state: TurnState::Done,
            created_ms: id,
            stats: None,
            error: None,
            branch: Branch {
                siblings: vec![TurnId(id)],
                index: 0,
            },
        }
    }

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn what_was_said_about_the_question_is_found_again_in_the_order_it_was_said() {
        let hidden = [
            turn(1, Role::User, "My sister Ada lives in Lisbon."),
            turn(2, Role::Assistant, "Lisbon is lovely."),
            turn(3, Role::User, "What is a monad?"),
            turn(4, Role::Assistant, "A monoid in the category of endofunctors."),
            turn(5, Role::User, "Ada has a dog called Rex."),
            turn(6, Role::Assistant, "Good dog."),
        ];
        let found = recall(&hidden, "Sister Ada, dog Rex?", 100, &words).unwrap();
        let turns: Vec<_> = found
            .iter()
            .map(|given| match given.source {
                Origin::Earlier { turn } => turn.0,
                _ => 0,
            })
            .collect();
        assert_eq!(turns, [1, 5]);
        assert_eq!(
            found[0].text,
            "[earlier in this chat]\nUser: My sister Ada lives in Lisbon.\n\nAssistant: Lisbon is lovely.\n\n"
        );
    }

    #[test]
    fn what_does_not_fit_leaves_its_place_and_an_empty_past_gives_nothing() {
        let hidden = [
            turn(1, Role::User, &"apple ".repeat(40)),
            turn(2, Role::Assistant, "Yes."),
            turn(3, Role::User, "An apple a day."),
            turn(4, Role::Assistant, "Indeed."),
        ];
        let found = recall(&hidden, "apple?", 20, &words).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].source, Origin::Earlier { turn: TurnId(3) });
        assert!(recall(&[], "apple?", 20, &words).unwrap().is_empty());
    }
}

//! The page sees the same types.

use reprise_library::chats::{ChatList, ExportFormat, Role, SearchHit, Turn, TurnState};
use ts_rs::{Config, TS};

/// A type's declaration without its comments.
fn declared<T: TS>() -> String {
    let declaration = T::decl(&Config::default());
    let parts = declaration
        .split("/**")
        .map(|part| part.split_once("*/").map_or(part, |(_, code)| code));
    parts
        .collect::<String>()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn ids_and_times_are_numbers_and_words_are_unions() {
    assert_eq!(declared::<Role>(), r#"type Role = "user" | "assistant";"#);
    assert_eq!(
        declared::<ExportFormat>(),
        r#"type ExportFormat = "markdown" | "json";"#
    );
    assert!(declared::<TurnState>().contains(r#""writing" | "done" | "stopped" | "limit" | "window""#));
    assert_eq!(
        declared::<Turn>(),
        "type Turn = { id: number, chat: number, parent: number | null, role: Role, text: string, state: TurnState, \
         createdMs: number, stats: AnswerStats | null, error: string | null, branch: Branch, };"
    );
    assert_eq!(
        declared::<SearchHit>(),
        "type SearchHit = { chat: number, title: string, turn: number | null, snippet: Array<SnippetPart>, \
         updatedMs: number, };"
    );
    assert_eq!(
        declared::<ChatList>(),
        "type ChatList = { chats: Array<ChatSummary>, folders: Array<Folder>, };"
    );
}

//! The values that go in and out of the chat store. The page sees the same ones: their TypeScript is generated from here.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

#[cfg(feature = "bindings")]
use ts_rs::TS;

/// A row's number as a type of its own, so that a turn is never taken for a chat. The page sees a plain number.
macro_rules! row_id {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                i64::column_result(value).map(Self)
            }
        }

        #[cfg(feature = "bindings")]
        impl TS for $name {
            type WithoutGenerics = Self;
            type OptionInnerType = Self;

            fn name(_: &ts_rs::Config) -> String {
                "number".to_string()
            }

            fn inline(config: &ts_rs::Config) -> String {
                <Self as TS>::name(config)
            }
        }
    };
}

row_id! {
    /// Names a chat. Never used again after the chat is erased.
    ChatId
}
row_id! {
    /// Names a turn. Within a chat a later turn has a greater id.
    TurnId
}
row_id! {
    /// Names a folder. Never used again after the folder is removed.
    FolderId
}

/// An enum that the database keeps as a word; the words are those of its JSON.
macro_rules! stored_word {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// The word for it in the database.
            pub(super) fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.word().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match value.as_str()? {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(FromSqlError::InvalidType),
                }
            }
        }
    };
}

/// Who wrote a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

stored_word!(Role { User = "user", Assistant = "assistant" });

/// How far a turn has come, and for answers why they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub enum TurnState {
    /// An answer that is being written (or waits to be).
    Writing,
    /// The model ended its turn, or a person's turn.
    Done,
    /// The person stopped it.
    Stopped,
    /// It reached the most tokens an answer may have.
    Limit,
    /// The model's window is full.
    Window,
    /// It only repeated itself.
    Repeating,
    /// The program ended while it was written.
    Interrupted,
    /// Something failed; `error` says what.
    Failed,
}

stored_word!(TurnState {
    Writing = "writing",
    Done = "done",
    Stopped = "stopped",
    Limit = "limit",
    Window = "window",
    Repeating = "repeating",
    Interrupted = "interrupted",
    Failed = "failed",
});

/// What an answer took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct AnswerStats {
    /// The model's name.
    pub model: String,
    /// Tokens of the prompt.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub prompt_tokens: u64,
    /// Prompt tokens whose keys and values were there because everything before them was the same.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub reused_prefix_tokens: u64,
    /// Prompt tokens reused at another place.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub reused_elsewhere_tokens: u64,
    /// Tokens of the answer.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub answer_tokens: u64,
    /// Whole milliseconds from the request to the first token.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub first_token_ms: u64,
    /// Whole milliseconds from the first token to the last.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub decode_ms: u64,
    /// Whole milliseconds that reading the reused tokens would have taken.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub saved_ms: u64,
}

/// Where a turn stands among the turns that share its parent; more than one are branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct Branch {
    /// All turns with this parent, oldest first.
    pub siblings: Vec<TurnId>,
    /// This turn's place among them, from 0.
    pub index: u32,
}

/// One question or one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The chat it belongs to.
    pub chat: ChatId,
    /// The turn it follows; none begins a chat.
    pub parent: Option<TurnId>,
    /// Who wrote it.
    pub role: Role,
    /// Its text; of an answer that is being written, what is there so far.
    pub text: String,
    /// How far it has come.
    pub state: TurnState,
    /// When it began, in milliseconds since 1970 (UTC).
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_ms: i64,
    /// What it took; none for questions and for answers that did not end in an orderly way. Of an answer that is being
    /// continued, what its beginning took.
    pub stats: Option<AnswerStats>,
    /// What failed.
    pub error: Option<String>,
    /// Its place among its siblings.
    pub branch: Branch,
}

/// Where something comes from that a question was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub enum Origin {
    /// A passage of a document.
    #[serde(rename_all = "camelCase")]
    Passage {
        /// The document's file.
        path: String,
        /// Whose the passage's keys and values are (see [`reprise_engine::Owner`]).
        owner: String,
        /// Where it stands there, in words: "page 3".
        place: String,
        /// Its first byte in the document's text.
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        start: u64,
        /// The byte after its last.
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        end: u64,
        /// Whether it was recognised in a picture.
        is_ocr: bool,
    },
    /// An earlier exchange of the same chat that does not fit into the prompt in its place.
    Earlier {
        /// Its question.
        turn: TurnId,
    },
    /// A skill.
    Skill {
        /// Its name.
        name: String,
    },
}

/// Something that a question was given to be answered from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct Given {
    /// What a person sees, and what an answer names it by: "report.pdf, page 3".
    pub label: String,
    /// The text as the model reads it.
    pub text: String,
    /// Where it comes from.
    pub source: Origin,
}

/// A chat as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct ChatSummary {
    /// Its id.
    pub id: ChatId,
    /// None until something was asked.
    pub title: Option<String>,
    /// The folder it is in.
    pub folder: Option<FolderId>,
    /// Kept at the top.
    pub pinned: bool,
    /// When it was made, in milliseconds since 1970 (UTC).
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_ms: i64,
    /// When something was last said in it.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub updated_ms: i64,
    /// What was typed and not sent.
    pub draft: String,
}

/// A folder of chats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct Folder {
    /// Its id.
    pub id: FolderId,
    /// Its name; no two are the same.
    pub name: String,
}

/// Everything the sidebar shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct ChatList {
    /// Pinned ones first, then the ones something was last said in.
    pub chats: Vec<ChatSummary>,
    /// By name.
    pub folders: Vec<Folder>,
}

/// A chat and the branch of it that is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct Chat {
    /// The chat itself.
    pub summary: ChatSummary,
    /// The turns from the first to the last of the branch that is shown.
    pub turns: Vec<Turn>,
}

/// A piece of a search hit's text; `hit` marks what was searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct SnippetPart {
    /// The text.
    pub text: String,
    /// Whether it is what was searched for.
    pub hit: bool,
}

/// A place where the words that were searched for are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct SearchHit {
    /// The chat it is in.
    pub chat: ChatId,
    /// That chat's title.
    pub title: String,
    /// The turn with the words; none when they are in the title.
    pub turn: Option<TurnId>,
    /// The words and a little of what is around them.
    pub snippet: Vec<SnippetPart>,
    /// When something was last said in the chat.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub updated_ms: i64,
}

/// What a chat is written out as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub enum ExportFormat {
    /// The branch that is shown, to be read.
    Markdown,
    /// Every branch, to be imported again.
    Json,
}

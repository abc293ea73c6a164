//! What the page is told and tells, beside the chats themselves (`reprise_library::chats`). The TypeScript side is
//! generated from these types: `ui/src/lib/bindings.ts`.

use reprise_engine::snapshot::Snapshot;
use reprise_library::cache::KeptOwner;
use reprise_library::chats::{ChatId, ChatList, ChatSummary, Turn, TurnId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How the page looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Theme {
    /// As the system does.
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// How keys and values of the context are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum KvStorage {
    /// As was measured to be good for the model.
    Profile,
    /// In 16 bits.
    F16,
    /// In 8 bits.
    Q8,
    /// In 4 bits.
    Tq4,
}

/// What of earlier prompts is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ReuseChoice {
    /// The same text wherever it stands; a share of it is computed again.
    Anywhere,
    /// What begins alike.
    Prefix,
    /// Nothing.
    Nothing,
}

/// What the person chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// How the page looks.
    pub theme: Theme,
    /// What the model is told before every chat.
    pub system_prompt: String,
    /// A model's name or file; none is the default one.
    pub model: Option<String>,
    /// The window in tokens; none is the smaller of the model's own and 8,192.
    #[ts(type = "number | null")]
    pub context_tokens: Option<usize>,
    /// Compute threads; none is the machine's cores.
    #[ts(type = "number | null")]
    pub threads: Option<usize>,
    /// How keys and values of the context are stored.
    pub kv_storage: KvStorage,
    /// Memory for the keys and values of all chats, in millions of bytes; none is a share of what is free.
    #[ts(type = "number | null")]
    pub kv_budget_megabytes: Option<u64>,
    /// What the program may take before new work is refused, in millions of bytes; none is a share of the machine's.
    #[ts(type = "number | null")]
    pub memory_limit_megabytes: Option<u64>,
    /// What of earlier prompts is used again.
    pub reuse: ReuseChoice,
    /// Of text that is used again at another place, the share that is computed again, from 0 to 1.
    pub recompute_ratio: f64,
    /// Disk for what was read, in millions of bytes; none is what suits the disk, and 0 keeps nothing.
    #[ts(type = "number | null")]
    pub disk_budget_megabytes: Option<u64>,
    /// Whether an idle machine on mains power reads indexed documents and skills before somebody asks about them.
    pub read_ahead: bool,
    /// Whether tokens are guessed ahead while one answer is written alone.
    pub speculation: bool,
    /// 0 takes the most likely token; higher is livelier.
    pub temperature: f32,
    /// The smallest set of tokens whose probability reaches this is drawn from.
    pub top_p: f32,
    /// Above 1, tokens that came up lately are less likely.
    pub repetition_penalty: f32,
    /// Most tokens of an answer.
    #[ts(type = "number")]
    pub max_answer_tokens: usize,
    /// Whether the list of chats is shown.
    pub sidebar_open: bool,
    /// Whether the panel at the right is shown.
    pub panel_open: bool,
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    /// What `Settings.model` takes.
    pub id: String,
    /// What a person reads.
    pub name: String,
    /// Bytes of its file.
    #[ts(type = "number")]
    pub size_bytes: u64,
    /// A sentence about it.
    pub note: String,
}

/// The model that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(tag = "status", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ModelState {
    /// Its file is being read.
    Loading {
        /// The name it is known by so far.
        name: String,
    },
    /// It can answer.
    Ready {
        /// Its own name.
        name: String,
        /// The type most weights have.
        quantisation: String,
        /// The window in use.
        #[ts(type = "number")]
        context_tokens: usize,
        /// The window it was trained for.
        #[ts(type = "number")]
        trained_context_tokens: usize,
        /// Compute threads in use.
        #[ts(type = "number")]
        threads: usize,
        /// What computes.
        backend: String,
        /// Something a person should know about it, such as a missing chat template.
        warning: Option<String>,
        /// Why nothing that is read now is kept on disk, where it was to be.
        store_fault: Option<String>,
    },
    /// It cannot be used.
    Failed {
        /// The name it is known by.
        name: String,
        /// What is wrong, and what to do.
        error: String,
    },
}

impl ModelState {
    /// The name it is known by.
    pub fn name(&self) -> &str {
        match self {
            ModelState::Loading { name }
            | ModelState::Ready { name, .. }
            | ModelState::Failed { name, .. } => name,
        }
    }
}

/// What a request is at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, TS)]
#[serde(tag = "at", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Phase {
    /// It waits for a place among the answers that are made side by side.
    Queued,
    /// The model is being loaded.
    Loading,
    /// The prompt is being read.
    Reading {
        /// Tokens read, those reused included.
        #[ts(type = "number")]
        done_tokens: usize,
        /// Tokens of the prompt.
        #[ts(type = "number")]
        total_tokens: usize,
        /// Tokens that were known already.
        #[ts(type = "number")]
        reused_tokens: usize,
        /// None before the speed is known.
        seconds_left: Option<f64>,
    },
    /// The answer is being written.
    Writing,
}

/// Something that happened; the page gets them in order, a list at most once per frame.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AppEvent {
    /// The model's state changed.
    Model {
        /// The state now.
        model: ModelState,
    },
    /// A request got further.
    Phase {
        /// The chat.
        chat: ChatId,
        /// The answer.
        turn: TurnId,
        /// What it is at.
        phase: Phase,
    },
    /// More of an answer.
    Text {
        /// The chat.
        chat: ChatId,
        /// The answer.
        turn: TurnId,
        /// The length (UTF-16 units) of what came before.
        #[ts(type = "number")]
        from: usize,
        /// What comes now.
        text: String,
    },
    /// An answer ended, in whatever way.
    Ended {
        /// The answer.
        turn: Turn,
    },
    /// A chat's title, draft, place or time changed.
    Chat {
        /// The chat now.
        summary: ChatSummary,
    },
    /// Something to tell the person, outside of any answer.
    Notice {
        /// The sentence.
        message: String,
    },
    /// The engine looks different now. At most ten times a second.
    Snapshot {
        /// Its latest picture; none while no model is loaded.
        snapshot: Option<Box<Snapshot>>,
    },
}

/// An answer under way when the page begins.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct UnderWay {
    /// Its chat.
    pub chat: ChatId,
    /// The answer.
    pub turn: TurnId,
    /// What it is at.
    pub phase: Phase,
}

/// What the page needs to begin.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    /// What the person chose.
    pub settings: Settings,
    /// What `Settings` are where nothing was chosen.
    pub default_settings: Settings,
    /// The model that answers.
    pub model: ModelState,
    /// The chats.
    pub list: ChatList,
    /// Draft of the chat that does not exist yet.
    pub new_chat_draft: String,
    /// What a person should know once: a backup that was made, answers that a crash cut short.
    pub notices: Vec<String>,
    /// Answers under way, when the page was loaded anew.
    pub phases: Vec<UnderWay>,
    /// The program's version.
    pub version: String,
    /// The source it was built from.
    pub commit: String,
    /// Where the chats are kept.
    pub data_folder: String,
    /// True where the system's modifier key is Cmd.
    pub is_mac: bool,
}

/// The window's tokens for a chat's next prompt, by owner. They add up to `window`, unless the draft does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ContextUse {
    /// All tokens there are.
    #[ts(type = "number")]
    pub window: usize,
    /// The system prompt's, with what the model's template writes around the messages.
    #[ts(type = "number")]
    pub system: usize,
    /// Those of skills that questions were asked with.
    #[ts(type = "number")]
    pub skills: usize,
    /// Those of passages that questions were given: of documents, and of earlier turns that were found again.
    #[ts(type = "number")]
    pub passages: usize,
    /// Those of earlier turns.
    #[ts(type = "number")]
    pub history: usize,
    /// Those of what is typed, with what the template writes around it.
    #[ts(type = "number")]
    pub draft: usize,
    /// Those of what is typed alone.
    #[ts(type = "number")]
    pub typed: usize,
    /// Those kept free for the answer.
    #[ts(type = "number")]
    pub reserved_output: usize,
    /// The rest.
    #[ts(type = "number")]
    pub free: usize,
    /// Oldest turns that the model no longer sees.
    #[ts(type = "number")]
    pub hidden_turns: usize,
}

/// What is kept on disk of texts that were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// For whom, those with the most bytes first.
    pub owners: Vec<KeptOwner>,
    /// Chunks in all; those of several owners count once.
    #[ts(type = "number")]
    pub chunks: usize,
    /// Bytes of their files.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Where they are.
    pub folder: String,
}

/// Why a command failed: what, where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct Failure {
    /// The sentence.
    pub message: String,
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure {
            message: error.to_string(),
        }
    }
}

impl Failure {
    /// A failure with this sentence.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
        }
    }
}

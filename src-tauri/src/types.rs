//! What the page is told and tells, beside the chats themselves (`reprise_library::chats`). The TypeScript side is
//! generated from these types: `ui/src/lib/bindings.ts`.

use reprise_engine::snapshot::Snapshot;
use reprise_library::cache::KeptOwner;
use reprise_library::chats::{ChatId, ChatList, ChatSummary, Given, Turn, TurnId};
use reprise_library::index::State as DocumentState;
use reprise_library::models::fit::Fit;
use reprise_library::skills::{QuestionTold, SkillSummary, StepTold};
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

/// The language of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Language {
    /// The system's where it is there, else English.
    System,
    /// English.
    English,
    /// German.
    German,
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
    /// What language the page speaks.
    pub language: Language,
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
    /// Whether the model may choose skills and call tools by itself, where it can.
    pub tools: bool,
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
    /// The documents are further, or others are there.
    Documents {
        /// How far they are.
        indexing: Indexing,
    },
    /// While an answer is made, the model called a tool, or a call was done.
    Step {
        /// The chat.
        chat: ChatId,
        /// The answer.
        turn: TurnId,
        /// What happened.
        step: StepTold,
    },
    /// Something wants to run, and the person is asked.
    Asks {
        /// The question.
        asking: Asking,
    },
    /// A question needs no decision any more.
    Asked {
        /// Its number.
        #[ts(type = "number")]
        id: u64,
    },
    /// A model that is fetched is further.
    Fetching {
        /// How far.
        fetching: Fetching,
    },
    /// The engine looks different now. At most ten times a second.
    Snapshot {
        /// Its latest picture; none while no model is loaded.
        snapshot: Option<Box<Snapshot>>,
    },
}

/// What a message is asked with beside its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", default)]
pub struct Asked {
    /// Documents that it is about, by their numbers.
    pub documents: Vec<String>,
    /// Whether it is about all of them.
    pub all_documents: bool,
    /// Skills that it is to be answered with, by their names.
    pub skills: Vec<String>,
}

/// What the next message of a chat is asked with beside its text, as chips.
#[derive(Debug, Clone, Default, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Chips {
    /// Documents that it is about; those that are gone meanwhile are left out.
    pub documents: Vec<DocumentShown>,
    /// Whether it is about all of them.
    pub all_documents: bool,
    /// Skills that it is to be answered with, by their names.
    pub skills: Vec<String>,
}

/// A question to the person before something runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Asking {
    /// Its number.
    #[ts(type = "number")]
    pub id: u64,
    /// The chat whose answer wants it.
    pub chat: ChatId,
    /// What is asked, and what "always" would mean.
    pub question: QuestionTold,
}

/// What an answer was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct AnswerSources {
    /// The answer with its marks as links to `passage:N`, N being a place in `given`, and without marks that name nothing.
    pub text: String,
    /// Passages, earlier exchanges and skills that its question was given, in the order of the prompt.
    pub given: Vec<Given>,
    /// Those that the answer names.
    #[ts(type = "Array<number>")]
    pub cited: Vec<usize>,
    /// What it did with tools.
    pub steps: Vec<StepTold>,
}

/// How far the documents are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Indexing {
    /// What is done.
    pub work: IndexWork,
    /// Documents to be read.
    #[ts(type = "number")]
    pub waiting: usize,
    /// Documents whose passages can be found.
    #[ts(type = "number")]
    pub ready: usize,
    /// Documents without text.
    #[ts(type = "number")]
    pub failed: usize,
    /// Files in folders of kinds that are not read.
    #[ts(type = "number")]
    pub skipped: usize,
    /// Passages.
    #[ts(type = "number")]
    pub passages: usize,
    /// Passages that are found by their words only, so far.
    #[ts(type = "number")]
    pub without_vector: usize,
    /// Bytes of the index on disk.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// What is done with the documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(tag = "at", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum IndexWork {
    /// All that is there was looked at.
    Idle,
    /// The person stopped it.
    Stopped,
    /// It could not be done.
    Failed {
        /// Why, and what to do.
        message: String,
    },
    /// Looks for files.
    Looking {
        /// Where.
        path: String,
    },
    /// Reads files.
    Reading {
        /// Files read.
        #[ts(type = "number")]
        done: usize,
        /// Files to be read.
        #[ts(type = "number")]
        total: usize,
        /// The file read last.
        name: String,
    },
    /// Finds out what passages mean.
    Embedding {
        /// Passages done.
        #[ts(type = "number")]
        done: usize,
        /// Passages to be done.
        #[ts(type = "number")]
        total: usize,
    },
}

/// A file or folder that was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SourceShown {
    /// Its number.
    #[ts(type = "number")]
    pub id: i64,
    /// Where it is.
    pub path: String,
    /// Whether everything in it counts.
    pub is_folder: bool,
    /// Documents found in it.
    #[ts(type = "number")]
    pub documents: usize,
    /// Whether it was there when last looked at.
    pub is_there: bool,
    /// Whether it is the program's own copy of a file that came without a path.
    pub is_copy: bool,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct DocumentShown {
    /// Its number.
    pub id: String,
    /// Its source's number.
    #[ts(type = "number")]
    pub source: i64,
    /// Its name without folder.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// Whether that is the program's own copy of a file that came without a path.
    pub is_copy: bool,
    /// Its size.
    #[ts(type = "number")]
    pub bytes: u64,
    /// How far it is.
    pub state: DocumentState,
    /// Why there is no text, and what to do.
    pub trouble: Option<String>,
    /// Whether a password would help.
    pub needs_password: bool,
    /// What a person should know about how it was read.
    pub notes: Vec<String>,
    /// Whether its text, or some of it, was recognised in pictures.
    pub is_ocr: bool,
    /// Passages it has.
    #[ts(type = "number")]
    pub passages: usize,
}

/// The documents, as the screen of them shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct DocumentList {
    /// What was added.
    pub sources: Vec<SourceShown>,
    /// The documents that were asked for, the first of them when they are many.
    pub documents: Vec<DocumentShown>,
    /// How many were asked for.
    #[ts(type = "number")]
    pub total: usize,
    /// How far they are.
    pub indexing: Indexing,
    /// What a person should know: why passages are found by words only, why scans are not read, what cannot be watched.
    pub notes: Vec<String>,
}

/// A passage of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PassageShown {
    /// Where it stands: "page 3".
    pub place: String,
    /// The headings it begins under.
    pub headings: Vec<String>,
    /// Its text.
    pub text: String,
    /// Its first byte in the document's text.
    #[ts(type = "number")]
    pub start: usize,
    /// The byte after its last.
    #[ts(type = "number")]
    pub end: usize,
    /// Whether it was recognised in a picture.
    pub is_ocr: bool,
}

/// A document's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct DocumentText {
    /// The document.
    pub document: DocumentShown,
    /// Its passages in order.
    pub passages: Vec<PassageShown>,
}

/// A skill, and what it takes of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SkillShown {
    /// The skill.
    pub skill: SkillSummary,
    /// Tokens of its instructions; none while no model is loaded.
    #[ts(type = "number | null")]
    pub tokens: Option<usize>,
}

/// The skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SkillList {
    /// Those that can be used, by name.
    pub skills: Vec<SkillShown>,
    /// Why others cannot: what, where and what to do.
    pub troubles: Vec<String>,
    /// Where they are looked for.
    pub folders: Vec<String>,
    /// Whether the model that is loaded can call tools; none while none is.
    pub can_call: Option<bool>,
}

/// How a model is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ModelOrigin {
    /// One that Reprise knows.
    Catalogue,
    /// One that the person added.
    Added,
    /// One that another program has on this machine.
    Found,
}

/// A model, on this machine or known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ModelShown {
    /// What `Settings.model` takes; of one that was found, its file.
    pub id: String,
    /// What a person reads.
    pub name: String,
    /// A sentence about it.
    pub note: String,
    /// How it is there.
    pub origin: ModelOrigin,
    /// Which program has it, of one that was found.
    pub found_in: Option<String>,
    /// Its file, where it is here.
    pub path: Option<String>,
    /// Bytes of its file.
    #[ts(type = "number")]
    pub size_bytes: u64,
    /// The type most weights have, where the file is here.
    pub quantisation: Option<String>,
    /// The window it was trained for.
    #[ts(type = "number | null")]
    pub context_tokens: Option<usize>,
    /// Bytes that it takes with the window in the settings; about that many where its file is not here.
    #[ts(type = "number | null")]
    pub needs_bytes: Option<u64>,
    /// Whether that fits.
    pub fit: Option<Fit>,
    /// Under which licence it is.
    pub licence: Option<String>,
    /// Where it is described.
    pub page: Option<String>,
    /// Why it cannot be used, of a file that is here.
    pub trouble: Option<String>,
    /// Whether it can be fetched from here.
    pub can_fetch: bool,
}

/// How far a model that is fetched has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Fetching {
    /// Its name in the catalogue.
    pub id: String,
    /// Bytes that are here.
    #[ts(type = "number")]
    pub done_bytes: u64,
    /// Bytes of the whole file, once they are known.
    #[ts(type = "number | null")]
    pub total_bytes: Option<u64>,
    /// Whether it has ended, well if there is no trouble.
    pub is_ended: bool,
    /// Why it is not here, and what to do.
    pub trouble: Option<String>,
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
    /// Questions that wait for the person, likewise.
    pub questions: Vec<Asking>,
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

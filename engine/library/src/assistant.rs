//! A loaded model as chats use it: messages in, answer out. What only writes prompts ([`Writer`]) can be shared with
//! other threads while the engine is busy.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::folders;
use reprise_engine::worker::AheadText;
use reprise_engine::{
    Answer, CancelToken, Engine, EngineError, Event, GenerateOptions, LoadOptions, ModelInfo, Owner,
    SamplingOptions, Segment, SegmentKind, StopReason, TokenId,
};
use reprise_model::template::{
    ChatTemplate, Owner as StretchOwner, PartedMessage, Role, TemplateError, TemplateOptions, ToolCalls,
    ToolSpec,
};
use reprise_model::tokenizer::{Specials, Tokenizer};

/// What chats are sampled with where a person chose nothing: lively enough for talk, and cool enough that small models
/// stay with the facts they know (at 0.7 and 1.1 the default model misses the capital of France).
pub const CHAT_TEMPERATURE: f32 = 0.3;
/// As [`CHAT_TEMPERATURE`]: enough that a loop is left, and little enough that an answer may use the question's words.
pub const CHAT_REPETITION_PENALTY: f32 = 1.05;

/// Tokens a title may have.
const TITLE_TOKENS: usize = 16;
/// Characters of a question that a title is made from: its beginning says what it is about.
const TITLE_SOURCE_CHARS: usize = 600;
/// Characters a title may have; longer ones are sentences.
const TITLE_CHARS: usize = 60;
/// Fewer tokens say little about how fast a model reads.
const LEAST_MEASURED_TOKENS: usize = 32;

/// Why a model could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssistantError {
    /// The engine refuses or fails.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The messages cannot be written in the model's way.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it says.
    pub text: String,
    /// What it is, where it is not just said: a passage, a skill.
    pub kind: SegmentKind,
    /// Whose it is, where it is not the chat's.
    pub owner: Option<Owner>,
}

impl<T: Into<String>> From<T> for Part {
    fn from(text: T) -> Part {
        Part {
            text: text.into(),
            kind: SegmentKind::Turn,
            owner: None,
        }
    }
}

/// One message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What it says, one part after the other; each part is tokenised on its own.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of one part.
    pub fn new(role: Role, text: impl Into<String>) -> Message {
        Message {
            role,
            parts: vec![Part::from(text)],
        }
    }

    /// All of what it says.
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }
}

/// A prompt, and what it consists of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaidOut {
    /// Its tokens.
    pub tokens: Vec<TokenId>,
    /// Its segments, in order.
    pub segments: Vec<Segment>,
}

/// Writes prompts for one model and counts their tokens.
pub struct Writer {
    info: ModelInfo,
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    /// Tokens that the template writes around one message.
    tokens_around: usize,
    /// Tokens that it writes once, without a system message (some templates bring one of their own) and with one.
    base: [usize; 2],
    tool_calls: ToolCalls,
}

impl Writer {
    fn new(engine: &Engine) -> Writer {
        let tokenizer = engine.shared_tokenizer();
        let mut info = engine.info().clone();
        // A chat has no use for a window that the KV memory cannot hold.
        let held_tokens = info.kv_budget_bytes / info.kv_token_bytes as u64;
        info.context_tokens = info
            .context_tokens
            .min(usize::try_from(held_tokens).unwrap_or(usize::MAX));
        let template = ChatTemplate::from_gguf(engine.gguf(), &tokenizer);
        let mut writer = Writer {
            info,
            tool_calls: template.tool_calls(&tokenizer),
            template,
            tokenizer,
            tokens_around: 0,
            base: [0; 2],
        };
        // What two messages more cost, beyond their texts; a template that refuses this makes no difference that
        // matters, for a prompt is counted whole before it is used.
        let sample = |exchanges: usize| {
            let exchange = [Message::new(Role::User, "a"), Message::new(Role::Assistant, "a")];
            let mut messages: Vec<Message> = exchange.iter().cycle().take(2 * exchanges).cloned().collect();
            messages.push(Message::new(Role::User, "a"));
            writer.prompt(&messages).map_or(0, |tokens| tokens.len())
        };
        let two = sample(2).saturating_sub(sample(1));
        writer.tokens_around = two.div_ceil(2).saturating_sub(writer.count("a"));
        let question = Message::new(Role::User, "a");
        let system = Message::new(Role::System, "a");
        writer.base = [vec![question.clone()], vec![system, question]].map(|messages| {
            let texts: usize = messages.len() * writer.count("a");
            let whole = writer.prompt(&messages).map_or(0, |tokens| tokens.len());
            whole.saturating_sub(texts + writer.tokens_around)
        });
        writer
    }

    /// Facts about the model; its window is no wider than the KV memory.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Whether the model can be told of tools, and how it calls them.
    pub fn tool_calls(&self) -> ToolCalls {
        self.tool_calls
    }

    /// What a person should be told about the model's template.
    pub fn warning(&self) -> Option<&str> {
        self.template.warning()
    }

    /// Tokens of a text that stands alone.
    pub fn count(&self, text: &str) -> usize {
        self.tokenizer.encode(text, Specials::AsText).len()
    }

    /// Tokens that a message takes in a prompt, given those of its text.
    pub fn with_frame(&self, text_tokens: usize) -> usize {
        text_tokens + self.tokens_around
    }

    /// Tokens that every prompt without a system message has besides its messages.
    pub fn base_tokens(&self) -> usize {
        self.base[0]
    }

    /// Tokens that every prompt with a system message has besides the messages and the system message's text.
    pub fn base_tokens_with_system(&self) -> usize {
        self.base[1]
    }

    /// The prompt for these messages, ending where the answer begins.
    ///
    /// # Errors
    /// When the model's template refuses the messages or fails.
    pub fn prompt(&self, messages: &[Message]) -> Result<Vec<TokenId>, AssistantError> {
        Ok(self.lay_out(messages, None)?.tokens)
    }

    /// The same, with the segments it consists of. What belongs to no one else is `owner`'s, and not stored where there
    /// is none. The last message's own words are the question.
    ///
    /// # Errors
    /// When the model's template refuses the messages or fails.
    pub fn lay_out(&self, messages: &[Message], owner: Option<&Owner>) -> Result<LaidOut, AssistantError> {
        self.lay_out_with_tools(messages, owner, &[])
    }

    /// The same for a model that may call these tools; one whose template knows of none is not told of them.
    ///
    /// # Errors
    /// When the model's template refuses the messages or fails.
    pub fn lay_out_with_tools(
        &self,
        messages: &[Message],
        owner: Option<&Owner>,
        tools: &[ToolSpec],
    ) -> Result<LaidOut, AssistantError> {
        let options = TemplateOptions {
            tools: tools.to_vec(),
            ..TemplateOptions::ask()
        };
        let parts: Vec<Vec<&str>> = messages
            .iter()
            .map(|message| message.parts.iter().map(|part| part.text.as_str()).collect())
            .collect();
        let parted: Vec<PartedMessage<'_>> = messages
            .iter()
            .zip(&parts)
            .map(|(message, parts)| PartedMessage {
                role: message.role,
                parts,
            })
            .collect();
        let stretches = self.template.encode_parts(&self.tokenizer, &parted, &options)?;
        let part_of = |owner: StretchOwner| match owner {
            StretchOwner::Part { message, part } => {
                let of = messages.get(message)?;
                Some((message, of.role, of.parts.get(part)?))
            }
            StretchOwner::Template => None,
        };
        let mut laid_out = LaidOut::default();
        let behind = stretches.iter().skip(1).map(|stretch| part_of(stretch.owner));
        let behind: Vec<_> = behind.chain([None]).collect();
        for (stretch, behind) in stretches.into_iter().zip(behind) {
            let part = part_of(stretch.owner);
            let (kind, own) = match part {
                Some((message, _, part))
                    if part.kind == SegmentKind::Turn && message + 1 == messages.len() =>
                {
                    (SegmentKind::Question, part.owner.as_ref())
                }
                Some((_, Role::System, part)) if part.kind == SegmentKind::Turn => {
                    (SegmentKind::System, part.owner.as_ref())
                }
                Some((_, _, part)) => (part.kind, part.owner.as_ref()),
                // What the template writes before a part is kept with it: without it nothing behind it has its context.
                None => (
                    SegmentKind::Turn,
                    behind.and_then(|(_, _, part)| part.owner.as_ref()),
                ),
            };
            laid_out.segments.push(Segment {
                kind,
                owner: own.or(owner).cloned(),
                tokens: stretch.ids.len(),
            });
            laid_out.tokens.extend(stretch.ids);
        }
        Ok(laid_out)
    }

    /// What these messages come to up to the end of their last passage, skill or system text: a prompt to be read ahead.
    ///
    /// # Errors
    /// When the model's template refuses the messages or fails.
    pub fn lay_out_ahead(&self, messages: &[Message]) -> Result<AheadText, AssistantError> {
        let LaidOut {
            mut tokens,
            mut segments,
        } = self.lay_out(messages, None)?;
        let stands_alone =
            |segment: &Segment| !matches!(segment.kind, SegmentKind::Turn | SegmentKind::Question);
        let end = segments.iter().rposition(stands_alone);
        segments.truncate(end.map_or(0, |last| last + 1));
        tokens.truncate(segments.iter().map(|segment| segment.tokens).sum());
        Ok(AheadText { tokens, segments })
    }

    /// The prompt for going on with an answer that has begun.
    ///
    /// # Errors
    /// When the model's template refuses the messages or fails.
    pub fn lay_out_begun(
        &self,
        messages: &[Message],
        begun: &str,
        owner: Option<&Owner>,
    ) -> Result<LaidOut, AssistantError> {
        let mut laid_out = self.lay_out(messages, owner)?;
        let begun = self.tokenizer.encode(begun, Specials::AsText);
        laid_out.segments.push(Segment {
            kind: SegmentKind::Turn,
            owner: owner.cloned(),
            tokens: begun.len(),
        });
        laid_out.tokens.extend(begun);
        Ok(laid_out)
    }

    /// These options as they suit a prompt of so many tokens: with the texts that end an answer of this model, and no
    /// more to be written than the window has room for, since that much KV memory is promised to the answer.
    pub fn suited(&self, mut options: GenerateOptions, prompt_tokens: usize) -> GenerateOptions {
        options.stop.extend_from_slice(self.template.stop_strings());
        let room = self.info.context_tokens.saturating_sub(prompt_tokens);
        // A prompt that leaves no room is refused by the engine, with the numbers.
        options.max_tokens = options.max_tokens.min(room.max(1));
        options
    }

    /// Tokens of the window kept free for the answer when a prompt is fitted into it: as many as may be written, but
    /// no more than a quarter of the window.
    pub fn answer_room(&self, max_answer_tokens: usize) -> usize {
        max_answer_tokens.min(self.info.context_tokens / 4)
    }
}

/// Which exchanges of a chat the model sees when they do not all fit: the newest ones, whole.
///
/// `exchanges` holds the tokens of each, oldest first, the last one with the question to be answered; `room` is what
/// they may take. When they outgrow it, as many of the oldest leave as bring those before the last down to three quarters, and
/// all of them within it. So the beginning of the prompt stays the same for many turns, and what was read before is reused; how
/// many leave does not depend on the newest exchange, which still grows by its answer.
pub fn visible(exchanges: &[usize], room: usize) -> Range<usize> {
    let mut begin = 0;
    let mut total = 0;
    for (index, tokens) in exchanges.iter().enumerate() {
        total += tokens;
        if total > room {
            while begin < index && (total - tokens > room / 4 * 3 || total > room) {
                total -= exchanges[begin];
                begin += 1;
            }
        }
    }
    begin..exchanges.len()
}

/// A model ready to answer.
pub struct Assistant {
    engine: Engine,
    writer: Arc<Writer>,
    /// Prompt tokens read a second, as last measured.
    reading_rate: Mutex<Option<f64>>,
}

impl Assistant {
    /// Loads a model file.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Assistant, AssistantError> {
        let mut options = options.clone();
        if options.profiles.is_none() {
            options.profiles = folders::profiles().ok();
        }
        let engine = Engine::load(path, &options)?;
        Ok(Assistant {
            writer: Arc::new(Writer::new(&engine)),
            engine,
            reading_rate: Mutex::new(None),
        })
    }

    /// What writes prompts for this model.
    pub fn writer(&self) -> &Arc<Writer> {
        &self.writer
    }

    /// The engine, for measuring.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Answers a prompt.
    ///
    /// # Errors
    /// As [`Engine::generate`].
    pub fn answer(
        &self,
        prompt: &[TokenId],
        options: &GenerateOptions,
        cancel: &CancelToken,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, AssistantError> {
        let suited = self.writer.suited(options.clone(), prompt.len());
        let mut answer = self.engine.generate(prompt, &suited, cancel, on_event)?;
        if answer.stop == StopReason::MaxTokens && suited.max_tokens < options.max_tokens {
            answer.stop = StopReason::WindowFull;
        }
        let read = answer.prompt_tokens - answer.reused_tokens + answer.recomputed_tokens;
        if read >= LEAST_MEASURED_TOKENS && answer.answer_tokens > 0 {
            let reading = answer.time_to_first_token - answer.waiting_time;
            let rate = read as f64 / reading.as_secs_f64();
            *self.reading_rate.lock().unwrap_or_else(PoisonError::into_inner) = Some(rate);
        }
        Ok(answer)
    }

    /// How long reading so many tokens would take; zero before anything was measured.
    pub fn reading_time(&self, tokens: usize) -> Duration {
        match *self.reading_rate.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(rate) if rate > 0.0 => Duration::from_secs_f64(tokens as f64 / rate),
            _ => Duration::ZERO,
        }
    }

    /// A title for a chat that begins with this question; none when the model finds no good one or is cancelled. The
    /// KV of the last answer is left as it was.
    ///
    /// # Errors
    /// As [`Engine::generate`].
    pub fn title(&self, question: &str, cancel: &CancelToken) -> Result<Option<String>, AssistantError> {
        let beginning: String = question.trim().chars().take(TITLE_SOURCE_CHARS).collect();
        let messages = [
            Message::new(
                Role::System,
                "You name conversations. Reply with a title of three to six words and nothing else.",
            ),
            Message::new(
                Role::User,
                format!("Title for a conversation that begins with:\n\n{beginning}"),
            ),
        ];
        let prompt = self.writer.prompt(&messages)?;
        let options = GenerateOptions {
            sampling: SamplingOptions {
                temperature: 0.0,
                ..SamplingOptions::default()
            },
            max_tokens: TITLE_TOKENS,
            stop: vec!["\n".into()],
            stop_when_repeating: true,
            scratch: true,
            owner: "title".into(),
            ..GenerateOptions::default()
        };
        let options = self.writer.suited(options, prompt.len());
        let answer = self.engine.generate(&prompt, &options, cancel, &mut |_| ())?;
        let is_whole = matches!(answer.stop, StopReason::EndOfTurn | StopReason::StopString(_));
        Ok(is_whole.then(|| tidy_title(&answer.text, question)).flatten())
    }
}

/// A title without quotes, labels and full stops; none when it is no title. Small models answer the question instead, or
/// begin to: what shares no word with the question, or is one word alone, says less than the question's own beginning.
fn tidy_title(raw: &str, question: &str) -> Option<String> {
    let mut title = raw.trim();
    for label in ["Title:", "title:", "TITLE:", "A:", "Answer:", "Q:"] {
        title = title.strip_prefix(label).unwrap_or(title).trim();
    }
    let marks: &[char] = &['"', '\'', '“', '”', '«', '»', '*', '#', '.', ' '];
    let title = title.trim_matches(marks);
    let words = title.split_whitespace().count();
    // A question without words of some length, or in a script without spaces between words, cannot be compared.
    let can_compare = !stems(question).is_empty() && question.chars().any(|c| c.is_ascii_alphabetic());
    let is_title = title.chars().count() <= TITLE_CHARS
        && !title.contains(['\n', '`', '{', '<'])
        && title.chars().any(char::is_alphabetic)
        && title.to_lowercase() != question.trim().to_lowercase()
        && (!can_compare || ((2..=9).contains(&words) && shares_a_word(title, question)));
    is_title.then(|| title.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Whether two texts have a word of some length in common, or words with the same beginning (bake, baking).
fn shares_a_word(one: &str, other: &str) -> bool {
    let others = stems(other);
    stems(one).iter().any(|stem| others.contains(stem))
}

/// The beginnings of the longer words.
fn stems(text: &str) -> Vec<String> {
    const STEM_CHARS: usize = 3;
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > STEM_CHARS)
        .map(|word| word.to_lowercase().chars().take(STEM_CHARS).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_exchanges_stay_and_the_beginning_is_stable() {
        assert_eq!(visible(&[10, 10, 10], 30), 0..3);
        assert_eq!(visible(&[], 30), 0..0);
        assert_eq!(visible(&[100], 30), 0..1, "the question itself never leaves");
        // A question that has got its answer since.
        assert_eq!(visible(&[40, 30, 20, 20], 100), 1..4);
        assert_eq!(visible(&[40, 30, 20, 35], 100), 1..4);
        let mut exchanges = Vec::new();
        let mut begins = Vec::new();
        for _ in 0..40 {
            exchanges.push(10);
            let range = visible(&exchanges, 100);
            assert!(exchanges[range.clone()].iter().sum::<usize>() <= 100);
            begins.push(range.start);
        }
        let moves = begins.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(
            moves <= 11,
            "the beginning moved {moves} times in 30 exchanges too many"
        );
        assert!(begins.is_sorted());
    }

    #[test]
    fn titles_are_tidied_and_sentences_refused() {
        let tidy = |raw| tidy_title(raw, "How do I bake bread?");
        assert_eq!(tidy("\"Baking Bread.\""), Some("Baking Bread".into()));
        assert_eq!(tidy("Title: **Baking  bread**"), Some("Baking bread".into()));
        assert_eq!(
            tidy("A: Bread and how to bake it"),
            Some("Bread and how to bake it".into())
        );
        assert_eq!(tidy(""), None);
        assert_eq!(tidy("python"), None);
        assert_eq!(tidy("```bread"), None);
        assert_eq!(
            tidy("Lisbon, Portugal"),
            None,
            "it has nothing to do with the question"
        );
        assert_eq!(tidy_title("烤面包", "怎么在家\n烤面包？"), Some("烤面包".into()));
        assert_eq!(
            tidy_title("Mending a PC", "How do I fix my PC?"),
            Some("Mending a PC".into())
        );
        assert_eq!(tidy("..."), None);
        assert_eq!(tidy("how do i bake bread?"), None);
        let sentence = "Baking bread is a process that takes flour, water, salt, yeast and time";
        assert_eq!(tidy(sentence), None);
    }
}

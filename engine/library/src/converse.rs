//! One answer of a stored chat: which turns the model sees, the prompt, and the answer written to the store as it comes.

use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reprise_engine::{Answer, CancelToken, Event, GenerateOptions, Owner, StopReason};
use reprise_model::template::Role as ModelRole;

use crate::assistant::{Assistant, AssistantError, LaidOut, Message, Part, Writer, visible};
use crate::calls_kept;
use crate::chats::{
    AnswerStats, ChatId, ChatStore, Given, Origin, Role, StoreError, Turn, TurnId, TurnState,
};
use crate::inspection::Readings;
use crate::prompt;
use crate::recall::recall;
use crate::skills::{
    AssistantModel, Consent, Step, StepLimits, StepTold, Toolbox, answer_with_tools, specs_for,
};

/// Earlier exchanges that are found again may take one part in so many of the window.
const EARLIER_SHARE: usize = 8;

/// Tokens of turns that were counted before. Turns that are written do not change, except answers that are continued,
/// which get longer.
#[derive(Default)]
pub struct TokenCounts(Mutex<HashMap<TurnId, (usize, usize)>>);

/// What questions of a chat were given, and answers made with, by turn.
pub type GivenOf = HashMap<TurnId, Vec<Given>>;

impl TokenCounts {
    /// Tokens of a turn with what it was given.
    fn of(&self, writer: &Writer, turn: &Turn, given: &[Given]) -> usize {
        let length = turn.text.len() + given.iter().map(|one| one.text.len()).sum::<usize>();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get(&turn.id) {
            Some(&(counted, tokens)) if counted == length => tokens,
            _ => {
                let given_tokens: usize = given.iter().map(|one| writer.count(&one.text)).sum();
                let tokens = given_tokens + writer.count(&text_of(writer, turn, given));
                counts.insert(turn.id, (length, tokens));
                tokens
            }
        }
    }
}

/// How answers are to be made.
#[derive(Debug, Clone, Default)]
pub struct Instructions {
    /// What the model is told before the chat; may be empty.
    pub system: String,
    /// How tokens are drawn, and how many at most.
    pub options: GenerateOptions,
    /// Tokens of the tools that the model is told of beside the system prompt.
    pub tools_tokens: usize,
}

/// What of a chat the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// System prompt, earlier turns, question.
    pub messages: Vec<Message>,
    /// Oldest turns that do not fit and are left out.
    pub hidden_turns: usize,
    /// Tokens of the system prompt and the tools, with what the model's template writes once, whatever the messages.
    pub system_tokens: usize,
    /// Tokens of the turns that are in, without what they were given.
    pub history_tokens: usize,
    /// Tokens of what the turns that are in were given, and of what the question that is still to come would be.
    pub given_tokens: GivenTokens,
    /// Tokens of the question that is still to come, in its place in the prompt, without what it would be given.
    pub draft_tokens: usize,
}

/// Tokens of what questions were given, by what it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenTokens {
    /// Passages of documents.
    pub passages: usize,
    /// Earlier exchanges of the chat that were found again.
    pub earlier: usize,
    /// Skills that questions were asked with.
    pub skills: usize,
    /// Calls of tools and what they came to.
    pub tools: usize,
}

impl GivenTokens {
    /// All of them.
    pub fn total(self) -> usize {
        self.passages + self.earlier + self.skills + self.tools
    }

    fn add_all(&mut self, writer: &Writer, given: &[Given]) {
        for one in given {
            let tokens = writer.count(&one.text);
            match one.source {
                Origin::Passage { .. } => self.passages += tokens,
                Origin::Earlier { .. } => self.earlier += tokens,
                Origin::Skill { .. } => self.skills += tokens,
                Origin::Call | Origin::Result { .. } => self.tools += tokens,
            }
        }
    }
}

/// What follows the turns of a chat in its next prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coming<'a> {
    /// An answer.
    Answer,
    /// A question that is being typed, and an answer to it.
    Draft {
        /// What is typed so far.
        text: &'a str,
        /// What the question would be given.
        given: &'a [Given],
    },
    /// The rest of an answer that has begun.
    RestOfAnswer {
        /// Tokens of its beginning.
        begun_tokens: usize,
    },
}

/// Lays out a chat: the newest exchanges that fit, whole, beside the system prompt and the room for the answer.
///
/// `turns` is a branch from its first turn on, and `given` what its questions were given: it stands before the question, in
/// its turn, so that earlier turns stay the prompt's beginning. `coming` is what follows them besides the answer still to be written.
pub fn layout(
    writer: &Writer,
    counts: &TokenCounts,
    turns: &[Turn],
    given: &GivenOf,
    instructions: &Instructions,
    coming: Coming<'_>,
) -> Layout {
    let system = instructions.system.trim();
    let system_tokens = instructions.tools_tokens
        + match system {
            "" => writer.base_tokens(),
            text => writer.base_tokens_with_system() + writer.count(text),
        };
    let mut given_tokens = GivenTokens::default();
    let (draft_tokens, begun_tokens) = match coming {
        Coming::Draft { text, given } if !(text.is_empty() && given.is_empty()) => {
            given_tokens.add_all(writer, given);
            let text = asked_of(writer, text, given);
            (writer.with_frame(writer.count(&text)), 0)
        }
        Coming::Answer | Coming::Draft { .. } => (0, 0),
        Coming::RestOfAnswer { begun_tokens } => (0, begun_tokens),
    };
    let coming_tokens = draft_tokens + given_tokens.total();
    let answer_room = writer.answer_room(instructions.options.max_tokens);
    let room = writer
        .info()
        .context_tokens
        .saturating_sub(system_tokens + answer_room + begun_tokens);

    // An exchange begins with each turn of the person.
    let mut exchanges: Vec<&[Turn]> = turns.chunk_by(|_, next| next.role != Role::User).collect();
    let mut tokens: Vec<usize> = exchanges
        .iter()
        .map(|exchange| {
            exchange
                .iter()
                .map(|turn| writer.with_frame(counts.of(writer, turn, given_to(given, turn))))
                .sum()
        })
        .collect();
    if coming_tokens > 0 {
        exchanges.push(&[]);
        tokens.push(coming_tokens);
    }
    let seen = visible(&tokens, room);
    let hidden_turns = exchanges[..seen.start]
        .iter()
        .map(|exchange| exchange.len())
        .sum();
    for turn in exchanges[seen.clone()].iter().copied().flatten() {
        given_tokens.add_all(writer, given_to(given, turn));
    }
    let all_tokens: usize = tokens[seen.clone()].iter().sum();
    let history_tokens = all_tokens.saturating_sub(draft_tokens + given_tokens.total());

    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(Message::new(ModelRole::System, system));
    }
    for turn in exchanges[seen].iter().copied().flatten() {
        add(&mut messages, writer, turn, given_to(given, turn));
    }
    Layout {
        messages,
        hidden_turns,
        system_tokens,
        history_tokens,
        given_tokens,
        draft_tokens,
    }
}

/// What these turns were given.
fn given_to_all<'a>(given: &'a GivenOf, turns: &[Turn]) -> Vec<&'a Given> {
    turns.iter().flat_map(|turn| given_to(given, turn)).collect()
}

/// What the model has before it in the next prompt of a chat, of what its turns were given.
pub fn seen_given<'a>(
    writer: &Writer,
    counts: &TokenCounts,
    turns: &[Turn],
    given: &'a GivenOf,
    instructions: &Instructions,
) -> Vec<&'a Given> {
    let hidden = layout(writer, counts, turns, given, instructions, Coming::Answer).hidden_turns;
    given_to_all(given, &turns[hidden..])
}

fn given_to<'a>(given: &'a GivenOf, turn: &Turn) -> &'a [Given] {
    given.get(&turn.id).map_or(&[], Vec::as_slice)
}

/// A turn's text as the model reads it.
fn text_of<'a, G: Borrow<Given>>(writer: &Writer, turn: &'a Turn, given: &[G]) -> Cow<'a, str> {
    match turn.role {
        Role::User => asked_of(writer, &turn.text, given),
        Role::Assistant => turn.text.as_str().into(),
    }
}

/// A question as the model reads it: one about passages says what is wanted of them.
fn asked_of<'a, G: Borrow<Given>>(writer: &Writer, text: &'a str, given: &[G]) -> Cow<'a, str> {
    let is_passage = |one: &G| matches!(one.borrow().source, Origin::Passage { .. });
    match given.iter().any(is_passage) {
        true => prompt::asked(text, prompt::names_passages(writer.info())).into(),
        false => text.into(),
    }
}

/// Adds a turn. Templates want the roles to alternate: a question that got no answer becomes part of the next one.
fn add(messages: &mut Vec<Message>, writer: &Writer, turn: &Turn, given: &[Given]) {
    if turn.text.trim().is_empty() {
        return;
    }
    let role = match turn.role {
        Role::User => ModelRole::User,
        Role::Assistant => ModelRole::Assistant,
    };
    let (calls, given): (Vec<&Given>, Vec<&Given>) = given.iter().partition(|one| one.source.is_of_answer());
    messages.extend(calls_kept::messages(calls.into_iter()));
    let mut parts: Vec<Part> = given.iter().map(|one| one.part()).collect();
    parts.push(text_of(writer, turn, &given).into_owned().into());
    match messages.last_mut() {
        Some(last) if last.role == role => {
            last.parts.push("\n\n".into());
            last.parts.extend(parts);
        }
        _ => messages.push(Message { role, parts }),
    }
}

/// What happens while an answer is made.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The prompt is being read.
    Reading {
        /// Tokens read, those reused included.
        done_tokens: usize,
        /// Tokens of the prompt.
        total_tokens: usize,
        /// Tokens that were known already.
        reused_tokens: usize,
        /// None before the speed is known.
        left: Option<Duration>,
    },
    /// More of the answer; it is in the store already.
    Text {
        /// UTF-16 units of the answer before it.
        from: usize,
        /// The text.
        text: &'a str,
    },
    /// The model calls a tool, a script starts, or a call was done.
    Step(StepTold),
}

/// Tools that an answer may be made with.
pub struct Tools<'a, 'b> {
    /// What there is.
    pub toolbox: &'a mut Toolbox<'b>,
    /// Asks the person.
    pub consent: &'a mut dyn Consent,
    /// How far the answer may go.
    pub limits: StepLimits,
}

/// Why there is no (whole) answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConverseError {
    /// The chats cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model fails.
    #[error(transparent)]
    Assistant(#[from] AssistantError),
    /// The question alone is too long.
    #[error(
        "the last message with the system prompt, and what the answer has so far, are {tokens} tokens; the model's \
         window takes {window}; shorten the message, or choose a larger window in the settings"
    )]
    TooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens it may have.
        window: usize,
    },
}

/// What a person reads under an answer whose memory others needed.
const STOPPED_FOR_OTHERS: &str = "stopped: the KV memory it used was needed for other chats";

/// An answer to be made.
#[derive(Clone, Copy)]
pub struct AnswerRequest<'a> {
    /// The chats.
    pub store: &'a ChatStore,
    /// What was counted for this model before.
    pub counts: &'a TokenCounts,
    /// The answer; in the store it is one being written.
    pub turn: TurnId,
    /// How it is to be made.
    pub instructions: &'a Instructions,
    /// Stops it.
    pub cancel: &'a CancelToken,
    /// Takes how its prompt was read.
    pub readings: &'a Readings,
    /// Whether an answer that is stopped before it has any new text is left as it is, for another model to make.
    pub is_put_off: &'a AtomicBool,
}

/// How the making of an answer ended.
struct Made {
    state: TurnState,
    /// Words beside the state, where it does not say all.
    words: Option<&'static str>,
    stats: AnswerStats,
    has_new_text: bool,
}

impl AnswerRequest<'_> {
    /// Makes the answer and ends it in the store, in whatever way; none when it was put off, and the store still calls it
    /// one being written. The error tells why an answer failed; the turn in the store tells it too, where the store can
    /// still be written.
    ///
    /// # Errors
    /// See [`ConverseError`].
    pub fn answer(
        self,
        assistant: &Assistant,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Turn>, ConverseError> {
        self.answer_with(assistant, None, on_progress)
    }

    /// As [`AnswerRequest::answer`], with tools that the model may call before it answers. Its calls and what they came to
    /// are kept with the answer. An answer that goes on where it was stopped calls none.
    ///
    /// # Errors
    /// See [`ConverseError`]. What a tool does wrong is told to the model.
    pub fn answer_with(
        self,
        assistant: &Assistant,
        tools: Option<Tools<'_, '_>>,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Turn>, ConverseError> {
        match self.try_answer(assistant, tools, on_progress) {
            Ok(made) => {
                let is_put_off = self.is_put_off.load(Ordering::Relaxed);
                if is_put_off && made.state == TurnState::Stopped && !made.has_new_text {
                    return Ok(None);
                }
                let ended = self
                    .store
                    .finish_answer(self.turn, made.state, Some(&made.stats), made.words)?;
                Ok(Some(ended))
            }
            Err(error) => {
                let words = error.to_string();
                self.store
                    .finish_answer(self.turn, TurnState::Failed, None, Some(&words))?;
                Err(error)
            }
        }
    }

    fn try_answer(
        self,
        assistant: &Assistant,
        tools: Option<Tools<'_, '_>>,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Made, ConverseError> {
        let AnswerRequest {
            store,
            counts,
            turn,
            instructions,
            cancel,
            readings,
            ..
        } = self;
        let mut turns = store.path_to(turn)?;
        let begun = turns.pop();
        let begun_text = begun.as_ref().map_or("", |turn| turn.text.as_str());
        let writer = Arc::clone(assistant.writer());
        let mut given = store.given_up_to(turn)?;
        let mut tools = tools.filter(|_| begun_text.is_empty());
        let mut instructions = instructions.clone();
        if let Some(tools) = &tools {
            instructions.tools_tokens = tools_tokens(&writer, tools, &instructions)?;
        }
        remember(
            store,
            &writer,
            counts,
            &turns,
            &mut given,
            begun_text,
            &instructions,
        )?;
        let messages = messages_of(&writer, counts, &turns, &given, begun_text, &instructions);
        let owner = turns.first().map(|turn| owner_of(turn.chat));
        let laid_out = lay_out(&writer, &messages, begun_text, owner.as_ref())?;
        let prompt_tokens = laid_out.tokens.len() + instructions.tools_tokens;
        let window = writer.info().context_tokens - 1;
        if prompt_tokens > window {
            return Err(ConverseError::TooLong {
                tokens: prompt_tokens,
                window,
            });
        }

        let mut writing = Writing {
            store,
            turn,
            cancel,
            written: begun_text.encode_utf16().count(),
            error: None,
        };
        let begun_units = writing.written;
        let (answer, laid_out) = match &mut tools {
            Some(tools) => {
                // It may have been begun before, and put off for another model.
                store.forget_steps(turn)?;
                let mut model = AssistantModel {
                    assistant,
                    options: &instructions.options,
                    owner: owner.as_ref(),
                    last_prompt: None,
                };
                let answered = answer_with_tools(
                    &mut model,
                    &messages,
                    tools.toolbox,
                    tools.consent,
                    tools.limits,
                    cancel,
                    &mut |step| writing.take_step(step, on_progress),
                )?;
                let calls = calls_kept::kept(&answered.between);
                if !calls.is_empty() {
                    store.set_given(turn, &calls)?;
                }
                (answered.answer, model.last_prompt.unwrap_or(laid_out))
            }
            None => {
                let options = GenerateOptions {
                    segments: laid_out.segments.clone(),
                    ..instructions.options.clone()
                };
                let answer = assistant.answer(&laid_out.tokens, &options, cancel, &mut |event| {
                    writing.take(event, on_progress);
                })?;
                (answer, laid_out)
            }
        };
        readings.note(turn, laid_out, &answer);
        if let Some(error) = writing.error {
            return Err(error.into());
        }
        let earlier = begun.as_ref().and_then(|turn| turn.stats.as_ref());
        Ok(Made {
            state: state_of(&answer.stop),
            words: (answer.stop == StopReason::Capacity).then_some(STOPPED_FOR_OTHERS),
            stats: stats_of(&answer, assistant, earlier),
            has_new_text: writing.written > begun_units,
        })
    }
}

/// Tokens of the tools that the model is told of.
fn tools_tokens(
    writer: &Writer,
    tools: &Tools<'_, '_>,
    instructions: &Instructions,
) -> Result<usize, AssistantError> {
    let room = writer
        .info()
        .context_tokens
        .saturating_sub(writer.answer_room(instructions.options.max_tokens));
    let specs = specs_for(writer.tool_calls(), tools.toolbox, room, &|text| {
        writer.count(text)
    });
    let message = [Message::new(ModelRole::User, "?")];
    let with = writer.lay_out_with_tools(&message, None, &specs)?.tokens.len();
    Ok(with.saturating_sub(writer.lay_out(&message, None)?.tokens.len()))
}

/// An answer on its way to the store and to who watches.
struct Writing<'a> {
    store: &'a ChatStore,
    turn: TurnId,
    cancel: &'a CancelToken,
    /// UTF-16 units of it.
    written: usize,
    error: Option<StoreError>,
}

impl Writing<'_> {
    fn take(&mut self, event: Event<'_>, on_progress: &mut dyn FnMut(Progress<'_>)) {
        match event {
            Event::Prefill {
                done_tokens,
                total_tokens,
                reused_tokens,
                reading_time,
            } => {
                let read = done_tokens.saturating_sub(reused_tokens);
                let left = (read > 0)
                    .then(|| reading_time.mul_f64((total_tokens - done_tokens) as f64 / read as f64));
                on_progress(Progress::Reading {
                    done_tokens,
                    total_tokens,
                    reused_tokens,
                    left,
                });
            }
            Event::Text(text) => {
                if self.error.is_some() {
                    return;
                }
                // First the disk, then the eye: what was seen is not lost.
                match self.store.append_piece(self.turn, text) {
                    Ok(()) => {
                        on_progress(Progress::Text {
                            from: self.written,
                            text,
                        });
                        self.written += text.encode_utf16().count();
                    }
                    Err(error) => {
                        self.error = Some(error);
                        self.cancel.cancel();
                    }
                }
            }
        }
    }

    fn take_step(&mut self, step: Step<'_>, on_progress: &mut dyn FnMut(Progress<'_>)) {
        match step {
            Step::Reading {
                done_tokens,
                total_tokens,
                reused_tokens,
                reading_time,
            } => self.take(
                Event::Prefill {
                    done_tokens,
                    total_tokens,
                    reused_tokens,
                    reading_time,
                },
                on_progress,
            ),
            Step::Text(text) => self.take(Event::Text(text), on_progress),
            other => {
                let Some(told) = other.told() else { return };
                if let Err(error) = self.store.add_step(self.turn, &told) {
                    self.error.get_or_insert(error);
                    self.cancel.cancel();
                }
                on_progress(Progress::Step(told));
            }
        }
    }
}

/// Gives the last question what earlier exchanges say about it that no longer fit into the prompt, once: later answers to it
/// are made from the same.
fn remember(
    store: &ChatStore,
    writer: &Writer,
    counts: &TokenCounts,
    turns: &[Turn],
    given: &mut GivenOf,
    begun: &str,
    instructions: &Instructions,
) -> Result<(), ConverseError> {
    let Some(question) = turns
        .last()
        .filter(|turn| turn.role == Role::User && begun.is_empty())
    else {
        return Ok(());
    };
    let is_earlier = |one: &Given| matches!(one.source, Origin::Earlier { .. });
    if given_to(given, question).iter().any(is_earlier) {
        return Ok(());
    }
    let hidden = layout(writer, counts, turns, given, instructions, Coming::Answer).hidden_turns;
    let budget = writer.info().context_tokens / EARLIER_SHARE;
    let seen = given_to_all(given, &turns[hidden..]);
    let found = recall(&turns[..hidden], &seen, &question.text, budget, &|text| {
        writer.count(text)
    });
    // A chat goes on without it, and the log says why.
    let mut found = found.unwrap_or_else(|error| {
        tracing::warn!(%error, "earlier exchanges could not be searched");
        Vec::new()
    });
    if found.is_empty() {
        return Ok(());
    }
    found.extend_from_slice(given_to(given, question));
    store.set_given(question.id, &found)?;
    given.insert(question.id, found);
    Ok(())
}

/// What the model sees for an answer to these turns, of which `begun` is there already, if anything is.
fn messages_of(
    writer: &Writer,
    counts: &TokenCounts,
    turns: &[Turn],
    given: &GivenOf,
    begun: &str,
    instructions: &Instructions,
) -> Vec<Message> {
    let coming = match begun {
        "" => Coming::Answer,
        text => Coming::RestOfAnswer {
            begun_tokens: writer.count(text),
        },
    };
    layout(writer, counts, turns, given, instructions, coming).messages
}

/// The prompt of messages, of whose answer `begun` is there already, if anything is.
fn lay_out(
    writer: &Writer,
    messages: &[Message],
    begun: &str,
    owner: Option<&Owner>,
) -> Result<LaidOut, AssistantError> {
    match begun {
        "" => writer.lay_out(messages, owner),
        text => writer.lay_out_begun(messages, text, owner),
    }
}

/// The prompt that an answer would be made from if it were asked for now.
///
/// # Errors
/// When the chat cannot be read, or the model's template refuses it.
pub fn prompt_before(
    store: &ChatStore,
    writer: &Writer,
    counts: &TokenCounts,
    answer: TurnId,
    instructions: &Instructions,
) -> Result<LaidOut, ConverseError> {
    let mut turns = store.path_to(answer)?;
    turns.pop();
    let given = store.given_up_to(answer)?;
    let messages = messages_of(writer, counts, &turns, &given, "", instructions);
    let owner = turns.first().map(|turn| owner_of(turn.chat));
    Ok(lay_out(writer, &messages, "", owner.as_ref())?)
}

/// The name under which the window keeps what the person chose, among the settings of the chats.
pub const WINDOW_SETTINGS: &str = "app";

/// Most tokens of an answer in the window, where the person chose nothing else.
pub const ANSWER_TOKENS: usize = 1_024;

/// The kind of owner under which chats' chunks are kept.
pub const CHAT_OWNER: &str = "chat";

/// Under which owner a chat's chunks are kept.
pub fn owner_of(chat: ChatId) -> Owner {
    Owner::new(CHAT_OWNER, chat.to_string()).unwrap_or_else(|_| unreachable!("a number is a name"))
}

fn state_of(stop: &StopReason) -> TurnState {
    match stop {
        StopReason::EndOfTurn | StopReason::StopString(_) => TurnState::Done,
        StopReason::MaxTokens => TurnState::Limit,
        StopReason::WindowFull => TurnState::Window,
        StopReason::Repeating => TurnState::Repeating,
        StopReason::Cancelled | StopReason::Capacity => TurnState::Stopped,
    }
}

/// `earlier` are the figures of the part that was there before, when the answer was continued.
fn stats_of(answer: &Answer, assistant: &Assistant, earlier: Option<&AnswerStats>) -> AnswerStats {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (tokens, decode_ms) = earlier.map_or((0, 0), |stats| (stats.answer_tokens, stats.decode_ms));
    AnswerStats {
        model: assistant.writer().info().name.clone(),
        prompt_tokens: answer.prompt_tokens as u64,
        reused_prefix_tokens: (answer.reused_tokens - answer.moved_tokens) as u64,
        reused_elsewhere_tokens: answer.moved_tokens as u64,
        answer_tokens: tokens + answer.answer_tokens as u64,
        first_token_ms: milliseconds(answer.time_to_first_token),
        decode_ms: decode_ms + milliseconds(answer.decode_time),
        saved_ms: milliseconds(assistant.reading_time(answer.reused_tokens)),
    }
}

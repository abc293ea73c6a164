//! Chat templates: from messages to the tokens a model was trained to read. The file's own template is used; a file
//! without one gets the form that its vocabulary was made for. What people type stays text: see [`ChatTemplate::encode`].

mod fallback;
mod jinja;
mod mask;
mod parts;
mod tools;

use std::sync::Arc;

use minijinja::{Environment, Value};

use crate::gguf::Gguf;
use crate::tokenizer::{Specials, TokenId, Tokenizer};
use jinja::Refusal;
use mask::{Masker, Masks};
pub use parts::{Owner, PartedMessage, Stretch};
pub use tools::{ToolCalls, ToolSpec};

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Standing instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool the model called.
    Tool,
}

impl Role {
    /// The name templates know the role by.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// One message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What it says: always text, whatever it contains.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: Role, content: impl Into<String>) -> Message {
        Message {
            role,
            content: content.into(),
        }
    }
}

/// Formats the present time by a strftime pattern, for templates that print a date.
pub type FormatTime = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// How to render.
#[derive(Clone, Default)]
pub struct TemplateOptions {
    /// End with the beginning of the assistant's turn, so that the model answers.
    pub add_generation_prompt: bool,
    /// What `strftime_now` gives; without it, templates use the fixed date they bring along. A date that changes makes
    /// the whole prompt new to the cache.
    pub format_time: Option<FormatTime>,
    /// What `enable_thinking` is for templates that have that switch; `None` leaves it to them.
    pub thinking: Option<bool>,
    /// Tools that the model may call; only a template that knows of tools writes them (see [`ChatTemplate::tool_calls`]).
    pub tools: Vec<ToolSpec>,
}

impl TemplateOptions {
    /// For asking the model: the prompt ends where its answer begins.
    pub fn ask() -> TemplateOptions {
        TemplateOptions {
            add_generation_prompt: true,
            ..TemplateOptions::default()
        }
    }
}

/// Why messages could not become a prompt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template itself says no, for example to two messages of one role in a row.
    #[error("the model's chat template does not accept these messages: {0}")]
    Refused(String),
    /// The template does something it cannot.
    #[error("the model's chat template failed: {0}; use the model with another template")]
    Failed(String),
    /// Every character that could protect the messages' text is in use.
    #[error(
        "the messages contain every private-use character there is, so their text cannot be protected; shorten them"
    )]
    NoStandIn,
}

/// A model's way of writing a chat.
#[derive(Debug)]
pub struct ChatTemplate {
    env: Environment<'static>,
    source: String,
    masker: Masker,
    stops: Vec<String>,
    warning: Option<String>,
    is_own: bool,
}

impl ChatTemplate {
    /// The file's template. Where it has none, or one that cannot be used, a built-in one that fits the vocabulary
    /// takes its place; the latter case leaves a [`ChatTemplate::warning`].
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> ChatTemplate {
        match gguf.optional::<&str>("tokenizer.chat_template") {
            Ok(Some(source)) if !source.trim().is_empty() => Self::from_source(source, tokenizer),
            Ok(_) => Self::built_in(tokenizer, None),
            Err(error) => Self::built_in(tokenizer, Some(error.to_string())),
        }
    }

    /// A template given as text, with the same fallback.
    pub fn from_source(source: &str, tokenizer: &Tokenizer) -> ChatTemplate {
        match jinja::environment(source) {
            Ok(env) => Self::assemble(env, source, tokenizer, &[], None, true),
            Err(error) => Self::built_in(tokenizer, Some(one_line(&error))),
        }
    }

    fn built_in(tokenizer: &Tokenizer, problem: Option<String>) -> ChatTemplate {
        let fallback = fallback::fitting(tokenizer);
        let name = fallback.name;
        let warning = problem.map(|problem| {
            format!("the model's own chat template cannot be used ({problem}); using {name} instead")
        });
        // The built-in templates are constants that the tests compile.
        let env = jinja::environment(fallback.source).unwrap_or_default();
        Self::assemble(env, fallback.source, tokenizer, fallback.stops, warning, false)
    }

    fn assemble(
        env: Environment<'static>,
        source: &str,
        tokenizer: &Tokenizer,
        stops: &[&str],
        warning: Option<String>,
        is_own: bool,
    ) -> ChatTemplate {
        ChatTemplate {
            env,
            source: source.to_owned(),
            masker: Masker::new(tokenizer.steering_texts()),
            stops: stops.iter().map(|&stop| stop.to_owned()).collect(),
            warning,
            is_own,
        }
    }

    /// What a person should be told: that the file's own template is not in use, and why.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Whether the template came with the model.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Texts that end an answer besides the end-of-generation tokens.
    pub fn stop_strings(&self) -> &[String] {
        &self.stops
    }

    /// The prompt as text, for showing. Do not encode it: text in it that only looks like a control token would become
    /// one; [`ChatTemplate::encode`] is safe.
    ///
    /// # Errors
    /// When the template refuses the messages or fails.
    pub fn render(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        options: &TemplateOptions,
    ) -> Result<String, TemplateError> {
        let contents: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        self.render_with(
            tokenizer,
            messages.iter().map(|message| message.role),
            &contents,
            tools::as_values(&options.tools, |_| None),
            options,
        )
    }

    /// The prompt's tokens. The template's control tokens are recognised; nothing in a message's content is, even when
    /// it spells one. The beginning-of-text token is there exactly once when the model wants it.
    ///
    /// # Errors
    /// When the template refuses the messages or fails.
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        options: &TemplateOptions,
    ) -> Result<Vec<TokenId>, TemplateError> {
        let contents: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        let Masked { texts, masks, tools } = self.masked(tokenizer, &contents, options)?;
        let masked: Vec<&str> = texts.iter().map(String::as_str).collect();
        let prompt = self.render_with(
            tokenizer,
            messages.iter().map(|message| message.role),
            &masked,
            tools,
            options,
        )?;
        let mut ids = Vec::with_capacity(prompt.len() / 3);
        tokenizer.encode_stretch(
            &prompt,
            Specials::Parse,
            true,
            &|text| masks.unmask(text),
            &mut ids,
        );
        if let Some(bos) = missing_bos(tokenizer, ids.first()) {
            ids.insert(0, bos);
        }
        Ok(ids)
    }

    /// The texts of messages and the tools, so that nothing in them becomes a control token.
    fn masked(
        &self,
        tokenizer: &Tokenizer,
        contents: &[&str],
        options: &TemplateOptions,
    ) -> Result<Masked, TemplateError> {
        let find = |text: &str| tokenizer.steering_places(text);
        let steering = tools::steering_texts(&options.tools, |text| !find(text).is_empty());
        let all: Vec<&str> = contents
            .iter()
            .copied()
            .chain(steering.iter().map(String::as_str))
            .collect();
        // No stand-in may be a character of a tool's other texts.
        let written = serde_json::to_string(&options.tools).unwrap_or_default();
        let (mut texts, masks) = self.masker.mask(&all, find, &[&self.source, &written])?;
        let replacements = texts.split_off(contents.len());
        let tools = tools::as_values(&options.tools, |text| {
            let at = steering.binary_search_by(|known| known.as_str().cmp(text)).ok()?;
            replacements.get(at).cloned()
        });
        Ok(Masked { texts, masks, tools })
    }

    fn render_with(
        &self,
        tokenizer: &Tokenizer,
        roles: impl Iterator<Item = Role>,
        contents: &[&str],
        tools: Value,
        options: &TemplateOptions,
    ) -> Result<String, TemplateError> {
        let text_of = |id: Option<TokenId>| id.and_then(|id| tokenizer.token_text(id)).unwrap_or_default();
        let listed: Vec<Value> = roles
            .zip(contents)
            .map(|(role, content)| minijinja::context! { role => role.as_str(), content => *content })
            .collect();
        let mut context = minijinja::context! {
            messages => listed,
            add_generation_prompt => options.add_generation_prompt,
            bos_token => text_of(tokenizer.bos()),
            eos_token => text_of(tokenizer.eos()),
            tools,
            documents => (),
        };
        if let Some(thinking) = options.thinking {
            context = minijinja::context! { enable_thinking => thinking, ..context };
        }
        if let Some(format_time) = options.format_time.clone() {
            let strftime_now = Value::from_function(move |pattern: String| format_time(&pattern));
            context = minijinja::context! { strftime_now, ..context };
        }
        let template = self
            .env
            .get_template(jinja::NAME)
            .map_err(|error| explain(&error))?;
        template.render(context).map_err(|error| explain(&error))
    }
}

/// What [`ChatTemplate::masked`] gives.
struct Masked {
    texts: Vec<String>,
    masks: Masks,
    tools: Value,
}

/// The beginning-of-text token, when the model wants it and the prompt does not begin with it.
fn missing_bos(tokenizer: &Tokenizer, first: Option<&TokenId>) -> Option<TokenId> {
    tokenizer
        .bos()
        .filter(|bos| tokenizer.adds_bos() && first != Some(bos))
}

/// Tells the template's own refusal from its faults.
fn explain(error: &minijinja::Error) -> TemplateError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(Refusal(message)) = cause.downcast_ref() {
            return TemplateError::Refused(message.clone());
        }
        source = cause.source();
    }
    TemplateError::Failed(one_line(error))
}

fn one_line(error: &minijinja::Error) -> String {
    error.to_string().lines().collect::<Vec<_>>().join(" ")
}

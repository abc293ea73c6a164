//! What answering with tools needs of a model, so that it can be tested without one.

use reprise_engine::{Answer, CancelToken, Event, GenerateOptions, Owner};
use reprise_model::template::{ToolCalls, ToolSpec};

use crate::assistant::{Assistant, AssistantError, Message};

/// A text that a model must not go on with: it is what the program says.
const RESULT_TAG: &str = "<tool_response>";

/// A model that answers messages.
pub trait Model {
    /// Whether it can be told of tools, and how it calls them.
    fn tool_calls(&self) -> ToolCalls;

    /// Tokens of a text.
    fn count(&self, text: &str) -> usize;

    /// Tokens that a prompt may have, with room left for the answer.
    fn room_tokens(&self) -> usize;

    /// Tokens of the prompt for these messages.
    ///
    /// # Errors
    /// When the model's template refuses them.
    fn prompt_tokens(&self, messages: &[Message], tools: &[ToolSpec]) -> Result<usize, AssistantError>;

    /// Answers them.
    ///
    /// # Errors
    /// When the template refuses them, or the engine fails.
    fn answer(
        &mut self,
        messages: &[Message],
        tools: &[ToolSpec],
        cancel: &CancelToken,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, AssistantError>;
}

/// A loaded model, asked in a certain way.
pub struct AssistantModel<'a> {
    /// The model.
    pub assistant: &'a Assistant,
    /// How answers are made.
    pub options: &'a GenerateOptions,
    /// Under whom is kept what belongs to no one else.
    pub owner: Option<&'a Owner>,
}

impl Model for AssistantModel<'_> {
    fn tool_calls(&self) -> ToolCalls {
        self.assistant.writer().tool_calls()
    }

    fn count(&self, text: &str) -> usize {
        self.assistant.writer().count(text)
    }

    fn room_tokens(&self) -> usize {
        let writer = self.assistant.writer();
        let answer = writer.answer_room(self.options.max_tokens);
        writer.info().context_tokens.saturating_sub(answer)
    }

    fn prompt_tokens(&self, messages: &[Message], tools: &[ToolSpec]) -> Result<usize, AssistantError> {
        let laid_out = self
            .assistant
            .writer()
            .lay_out_with_tools(messages, self.owner, tools)?;
        Ok(laid_out.tokens.len())
    }

    fn answer(
        &mut self,
        messages: &[Message],
        tools: &[ToolSpec],
        cancel: &CancelToken,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, AssistantError> {
        let laid_out = self
            .assistant
            .writer()
            .lay_out_with_tools(messages, self.owner, tools)?;
        let mut options = self.options.clone();
        options.segments = laid_out.segments;
        if !tools.is_empty() {
            options.stop.push(RESULT_TAG.to_owned());
        }
        self.assistant
            .answer(&laid_out.tokens, &options, cancel, on_event)
    }
}

//! Calls of tools in what a model writes. A call is taken out of the text as it streams, so that nobody is shown half of
//! one; where the model's JSON is nearly right it is understood. How the text is cut into pieces changes nothing.
//!
//! The form is that of Hermes and Qwen models, `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`. Small models
//! forget the tags: an object, in a code block or not, that begins a line with the name of a tool that they were told of
//! is a call too.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

/// Bytes that one call may have.
const MAX_CALL_BYTES: usize = 64 * 1024;
/// Characters of a broken call that are kept for showing.
const SHOWN_CHARS: usize = 400;
/// What calls begin and end with; small models take the name of the list of tools for it.
const TAGS: [(&str, &str); 2] = [("<tool_call>", "</tool_call>"), ("<tools>", "</tools>")];
const FENCE: &str = "```";
/// Letters that a code block's language may have.
const MAX_LANGUAGE: usize = 12;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    /// An argument that is text, or can be said as text.
    pub fn text(&self, argument: &str) -> Option<String> {
        match self.arguments.get(argument)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        }
    }

    /// An argument that is a list of texts; one text alone is cut at its spaces.
    pub fn texts(&self, argument: &str) -> Vec<String> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match self.arguments.get(argument) {
            Some(Value::Array(items)) => items.iter().map(text).collect(),
            Some(Value::String(line)) => line.split_whitespace().map(str::to_owned).collect(),
            None | Some(Value::Null) => Vec::new(),
            Some(other) => vec![other.to_string()],
        }
    }
}

/// A call that could not be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenCall {
    /// What the model wrote, its beginning.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Takes calls out of a text that comes in pieces.
#[derive(Debug)]
pub struct CallParser {
    known: Vec<String>,
    /// What came and is neither shown nor part of a call yet.
    held: String,
    state: State,
    at_line_start: bool,
    calls: Vec<Result<ToolCall, BrokenCall>>,
}

#[derive(Debug)]
enum State {
    Text,
    /// Behind an opening tag, up to this closing one.
    Tagged(&'static str),
    /// In an object without tags.
    Bare {
        scan: Scan,
        is_fenced: bool,
    },
    /// Behind an object in a code block, whose end is still to come.
    BehindFenced,
}

/// What is at a place of a text.
#[derive(Debug, PartialEq, Eq)]
enum Opening {
    No,
    /// It cannot be told yet.
    Maybe,
    Tag {
        bytes: usize,
        closing: &'static str,
    },
    /// An object that begins after so many bytes.
    Bare {
        bytes: usize,
        is_fenced: bool,
    },
}

impl CallParser {
    /// A parser for a model that was told of the tools with these names.
    pub fn new(known: impl IntoIterator<Item = impl Into<String>>) -> CallParser {
        CallParser {
            known: known.into_iter().map(Into::into).collect(),
            held: String::new(),
            state: State::Text,
            at_line_start: true,
            calls: Vec::new(),
        }
    }

    /// Takes the next piece; what of the text can be shown now.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let mut shown = String::new();
        while self.step(&mut shown) {}
        shown
    }

    /// At the end: what is left to be shown, and the calls in order.
    pub fn finish(mut self) -> (String, Vec<Result<ToolCall, BrokenCall>>) {
        let mut shown = String::new();
        while self.step(&mut shown) {}
        let rest = std::mem::take(&mut self.held);
        match self.state {
            State::Text => shown.push_str(&rest),
            State::Tagged(_) | State::Bare { .. } => self.calls.extend(understand(&rest)),
            State::BehindFenced => {}
        }
        (shown, self.calls)
    }

    /// Whether a call has come, or begins.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty() || !matches!(self.state, State::Text)
    }

    /// Goes on as far as what is held allows; whether there may be more to do.
    fn step(&mut self, shown: &mut String) -> bool {
        match &mut self.state {
            State::Text => return self.step_text(shown),
            State::Tagged(closing) => {
                let (closing, held) = (*closing, &self.held);
                let end = held.find(closing).map(|at| (at, at + closing.len()));
                // A second call may begin although the first did not end.
                let next = TAGS
                    .iter()
                    .filter_map(|(opening, _)| held.find(opening))
                    .min()
                    .map(|at| (at, at));
                let cut = match (end, next) {
                    (Some(end), Some(next)) => Some(end.min(next)),
                    (end, next) => end.or(next),
                };
                match cut.filter(|(end, _)| *end <= MAX_CALL_BYTES) {
                    Some((end, behind)) => self.end_call(end, behind, State::Text),
                    // Long enough for the tag at the limit to have come whole.
                    None if held.len() > MAX_CALL_BYTES + closing.len() => self.overflow(),
                    None => return false,
                }
            }
            State::Bare { scan, is_fenced } => {
                let is_fenced = *is_fenced;
                let next = if is_fenced {
                    State::BehindFenced
                } else {
                    State::Text
                };
                match scan.end_of_object(&self.held) {
                    Some(end) if end <= MAX_CALL_BYTES => self.end_call(end, end, next),
                    _ if self.held.len() > MAX_CALL_BYTES => self.overflow(),
                    _ => return false,
                }
            }
            State::BehindFenced => {
                let rest = self.held.trim_start();
                if rest.len() < FENCE.len() && FENCE.starts_with(rest) {
                    return false;
                }
                let blank = self.held.len() - rest.len();
                if rest.starts_with(FENCE) {
                    self.held.drain(..blank + FENCE.len());
                }
                self.state = State::Text;
            }
        }
        true
    }

    fn end_call(&mut self, end: usize, behind: usize, next: State) {
        let call: String = self.held.drain(..behind).collect();
        self.calls.extend(understand(call.get(..end).unwrap_or(&call)));
        self.state = next;
        self.at_line_start = true;
    }

    /// Gives up a call that does not end; what follows is text again.
    fn overflow(&mut self) {
        let end = self.held.floor_char_boundary(MAX_CALL_BYTES);
        let call: String = self.held.drain(..end).collect();
        self.calls
            .push(Err(broken(&call, "it is longer than any call should be")));
        self.state = State::Text;
    }

    fn step_text(&mut self, shown: &mut String) -> bool {
        let mut at = 0;
        loop {
            let rest = self.held.get(at..).unwrap_or_default();
            // Nothing else begins a call; blanks at a line's beginning may stand before one.
            let Some(offset) = rest.find(['<', '`', '{']) else {
                self.show(self.held.len(), shown);
                return false;
            };
            at += offset;
            let before = self.held.get(..at).unwrap_or_default();
            let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
            let is_first = line.trim().is_empty() && (self.at_line_start || before.contains('\n'));
            match opening(self.held.get(at..).unwrap_or_default(), is_first, &self.known) {
                Opening::No => at += 1,
                Opening::Maybe => {
                    self.show(at, shown);
                    return false;
                }
                Opening::Tag { bytes, closing } => {
                    self.show(at, shown);
                    self.held.drain(..bytes);
                    self.state = State::Tagged(closing);
                    return true;
                }
                Opening::Bare { bytes, is_fenced } => {
                    self.show(at, shown);
                    self.held.drain(..bytes);
                    self.state = State::Bare {
                        scan: Scan::default(),
                        is_fenced,
                    };
                    return true;
                }
            }
        }
    }

    /// Shows the first bytes of what is held.
    fn show(&mut self, bytes: usize, shown: &mut String) {
        let text: String = self.held.drain(..bytes).collect();
        match text.rsplit_once('\n') {
            Some((_, line)) => self.at_line_start = line.trim().is_empty(),
            None => self.at_line_start &= text.trim().is_empty(),
        }
        shown.push_str(&text);
    }
}

/// What the text begins with; `is_first` when nothing stands before it on its line.
fn opening(text: &str, is_first: bool, known: &[String]) -> Opening {
    for (opening, closing) in TAGS {
        if text.starts_with(opening) {
            return Opening::Tag {
                bytes: opening.len(),
                closing,
            };
        }
        if opening.starts_with(text) {
            return Opening::Maybe;
        }
    }
    if !is_first {
        return Opening::No;
    }
    let mut rest = text;
    let is_fenced = text.starts_with('`');
    if is_fenced {
        if FENCE.starts_with(text) {
            return Opening::Maybe;
        }
        let Some(behind) = text.strip_prefix(FENCE) else {
            return Opening::No;
        };
        let language = behind
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count();
        if language > MAX_LANGUAGE {
            return Opening::No;
        }
        rest = behind.get(language..).unwrap_or_default().trim_start();
        if rest.is_empty() {
            return Opening::Maybe;
        }
    }
    let bytes = text.len() - rest.len();
    match names_a_tool(rest, known) {
        Opening::No => Opening::No,
        Opening::Maybe => Opening::Maybe,
        _ => Opening::Bare { bytes, is_fenced },
    }
}

/// Whether a text begins as an object whose first field names a tool.
fn names_a_tool(text: &str, known: &[String]) -> Opening {
    let mut rest = text;
    for expected in ["{", "\"name\"", ":", "\""] {
        if rest.starts_with(expected) {
            rest = rest.get(expected.len()..).unwrap_or_default();
        } else if expected.starts_with(rest) {
            return Opening::Maybe;
        } else {
            return Opening::No;
        }
        // Not inside of the name itself.
        if expected != "\"" {
            rest = rest.trim_start();
        }
    }
    let full = known.iter().any(|name| {
        rest.strip_prefix(name.as_str())
            .is_some_and(|behind| behind.starts_with('"'))
    });
    if full {
        Opening::Bare {
            bytes: 0,
            is_fenced: false,
        }
    } else if known.iter().any(|name| format!("{name}\"").starts_with(rest)) {
        Opening::Maybe
    } else {
        Opening::No
    }
}

/// Finds the end of an object in a text that grows.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Scan {
    fn end_of_object(&mut self, text: &str) -> Option<usize> {
        while let Some(&byte) = text.as_bytes().get(self.at) {
            self.at += 1;
            self.see(byte);
            if self.depth == 0 && !self.in_text && matches!(byte, b'}' | b']') {
                return Some(self.at);
            }
        }
        None
    }

    fn see(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_text => self.is_escaped = true,
            b'"' => self.in_text = !self.in_text,
            b'{' | b'[' if !self.in_text => self.depth += 1,
            b'}' | b']' if !self.in_text => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// The calls in what stood between tags; at least one, or what is wrong.
fn understand(text: &str) -> Vec<Result<ToolCall, BrokenCall>> {
    let not_understood = |reason| vec![Err(broken(text, reason))];
    let inner = text
        .trim()
        .trim_start_matches(FENCE)
        .trim_end_matches(FENCE)
        .trim();
    let inner = inner.strip_prefix("json").unwrap_or(inner).trim();
    if inner.is_empty() {
        return not_understood("it is empty");
    }
    let Some(values) = values(inner) else {
        return not_understood("it is not JSON");
    };
    let mut calls = Vec::new();
    for value in values {
        match value {
            Value::Array(items) => calls.extend(items.iter().map(|item| call_of(item, text))),
            value => calls.push(call_of(&value, text)),
        }
    }
    if calls.is_empty() {
        return not_understood("it names no tool");
    }
    calls
}

fn broken(text: &str, reason: &str) -> BrokenCall {
    BrokenCall {
        text: text.trim().chars().take(SHOWN_CHARS).collect(),
        reason: reason.into(),
    }
}

/// The JSON values in a text: several may stand one after the other; what is nearly JSON is mended.
fn values(text: &str) -> Option<Vec<Value>> {
    let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    if let Ok(values) = read {
        return Some(values);
    }
    let begin = text.find(['{', '['])?;
    let text = text.get(begin..)?;
    // Words behind the object.
    if let Some(end) = Scan::default().end_of_object(text)
        && let Some(object) = text.get(..end)
        && let Some(value) = nearly(object)
    {
        return Some(vec![value]);
    }
    // An object that was not closed.
    let mut closers = Vec::new();
    let mut scan = Scan::default();
    for byte in text.bytes() {
        let was_text = scan.in_text;
        scan.see(byte);
        match byte {
            b'{' if !was_text => closers.push('}'),
            b'[' if !was_text => closers.push(']'),
            b'}' | b']' if !was_text => drop(closers.pop()),
            _ => {}
        }
    }
    let mut closed = text.trim_end().trim_end_matches(',').to_owned();
    if scan.in_text {
        closed.push('"');
    }
    closed.extend(closers.iter().rev());
    nearly(&closed).map(|value| vec![value])
}

/// One value, also with raw line ends in its texts, single quotes, or a comma too many.
fn nearly(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let mut scan = Scan::default();
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' if scan.in_text => escaped.push_str("\\n"),
            '\t' if scan.in_text => escaped.push_str("\\t"),
            '\r' if scan.in_text => {}
            c => escaped.push(c),
        }
        // A letter of several bytes is no mark of JSON.
        scan.see(u8::try_from(c).unwrap_or(b'x'));
    }
    if let Ok(value) = serde_json::from_str(&escaped) {
        return Some(value);
    }
    // YAML's flow style is JSON with more freedom.
    super::front_matter::read(&escaped).ok().filter(Value::is_object)
}

/// The call that a value is.
fn call_of(value: &Value, text: &str) -> Result<ToolCall, BrokenCall> {
    let broken = |reason| broken(text, reason);
    let fields = match value.get("function") {
        Some(function) if function.is_object() => function,
        _ => value,
    };
    let name = fields.get("name").and_then(Value::as_str).map(str::trim);
    let name = name
        .filter(|name| !name.is_empty())
        .ok_or_else(|| broken("it names no tool"))?;
    let arguments = fields.get("arguments").or_else(|| fields.get("parameters"));
    let arguments = match arguments {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        // Some models write the object as a text.
        Some(Value::String(text)) => match nearly(text) {
            Some(Value::Object(arguments)) => arguments,
            _ if text.trim().is_empty() => Map::new(),
            _ => return Err(broken("its arguments are no object")),
        },
        Some(_) => return Err(broken("its arguments are no object")),
    };
    Ok(ToolCall {
        name: name.to_owned(),
        arguments,
    })
}

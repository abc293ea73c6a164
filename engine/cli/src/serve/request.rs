//! What a client asks for: the body of `POST /v1/chat/completions`.
//!
//! Fields that change nothing here are passed over, known or not, for clients send many. A field that would change the
//! answer and cannot be honoured is refused by name.

use reprise_engine::SamplingOptions;
use reprise_library::assistant::{CHAT_REPETITION_PENALTY, CHAT_TEMPERATURE, Message};
use reprise_model::template::Role;
use serde_json::{Map, Value};

use super::error::ApiError;

/// Stop texts of one request, and characters of each.
const MOST_STOPS: usize = 16;
const MOST_STOP_CHARS: usize = 1_024;
/// A `user` that long, of printable characters, is shown to the person at this machine; others are not.
const MOST_USER_CHARS: usize = 32;
/// As large as an answer may be asked for: more is as good as no limit.
const MOST_TOKENS: u64 = 1 << 24;

/// A request, checked as far as it can be without the model.
#[derive(Debug)]
pub struct ChatRequest {
    /// Which model; none takes the one that is there.
    pub model: Option<String>,
    pub messages: Vec<Message>,
    pub sampling: SamplingOptions,
    /// Most tokens of the answer; none takes what the server or the window says.
    pub max_tokens: Option<usize>,
    pub stop: Vec<String>,
    pub stream: bool,
    /// Whether a stream ends with the usage.
    pub include_usage: bool,
    /// Who asks, where that can be shown.
    pub user: Option<String>,
}

impl ChatRequest {
    /// Reads a body.
    pub fn parse(body: &[u8]) -> Result<ChatRequest, ApiError> {
        let fields = match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => Fields(map),
            Ok(_) => return Err(bad_body("it is no object")),
            Err(error) => return Err(bad_body(&error.to_string())),
        };
        refuse_what_is_not_there(&fields)?;
        let max_tokens = match fields.whole("max_completion_tokens", 1)? {
            None => fields.whole("max_tokens", 1)?,
            given => given,
        };
        Ok(ChatRequest {
            model: fields.text("model")?.map(str::to_owned),
            messages: messages(&fields)?,
            sampling: sampling(&fields)?,
            max_tokens: max_tokens.map(|number| number.min(MOST_TOKENS) as usize),
            stop: stops(&fields)?,
            stream: fields.flag("stream")?,
            include_usage: match fields.get("stream_options") {
                None => false,
                Some(Value::Object(options)) => Fields(options.clone()).flag("include_usage")?,
                Some(_) => return Err(fields.wrong("stream_options", "an object")),
            },
            user: fields.text("user")?.and_then(shown_user),
        })
    }
}

fn bad_body(why: &str) -> ApiError {
    let status = axum::http::StatusCode::BAD_REQUEST;
    ApiError::new(status, format!("the body is not the JSON of a request: {why}"))
}

/// What of `user` is shown: short and printable, or nothing.
fn shown_user(user: &str) -> Option<String> {
    let user = user.trim();
    let is_shown = !user.is_empty()
        && user.chars().count() <= MOST_USER_CHARS
        && !user.chars().any(char::is_control)
        && user.chars().all(|c| c == ' ' || !c.is_whitespace());
    is_shown.then(|| user.to_owned())
}

/// The fields of an object. A null is as good as a field left out.
struct Fields(Map<String, Value>);

impl Fields {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, needed: &str) -> ApiError {
        ApiError::field(name, format!("{name} must be {needed}"))
    }

    fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a text")),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    fn whole(&self, name: &str, least: u64) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        // Some languages have no whole numbers, and write 16.0.
        let as_whole =
            |number: f64| (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64);
        let number = value.as_u64().or_else(|| value.as_f64().and_then(as_whole));
        match number {
            Some(number) if number >= least => Ok(Some(number)),
            _ => Err(self.wrong(name, &format!("a whole number of at least {least}"))),
        }
    }

    fn number(&self, name: &str, least: f64, most: f64) -> Result<Option<f32>, ApiError> {
        match self.get(name).map(Value::as_f64) {
            None => Ok(None),
            Some(Some(number)) if (least..=most).contains(&number) => Ok(Some(number as f32)),
            Some(_) => Err(self.wrong(name, &format!("a number from {least} to {most}"))),
        }
    }

    /// Whether a list or an object holds anything, or another value is there at all.
    fn holds_anything(&self, name: &str) -> bool {
        match self.get(name) {
            None => false,
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            Some(_) => true,
        }
    }
}

/// Refuses what would change the answer and is not done here.
fn refuse_what_is_not_there(fields: &Fields) -> Result<(), ApiError> {
    let refuse = |name: &str, why: &str| Err(ApiError::unsupported(name, why));
    if fields.whole("n", 1)?.unwrap_or(1) != 1 {
        return refuse(
            "n",
            "one answer a request is given; ask again for another (n must be 1)",
        );
    }
    if fields.flag("logprobs")? || fields.whole("top_logprobs", 0)?.unwrap_or(0) > 0 {
        return refuse("logprobs", "log probabilities are not given; leave logprobs out");
    }
    for name in ["frequency_penalty", "presence_penalty"] {
        if fields.number(name, -2.0, 2.0)?.unwrap_or(0.0) != 0.0 {
            let text = format!("{name} is not supported; leave it out, or use repetition_penalty (1 to 1.2)");
            return refuse(name, &text);
        }
    }
    for name in ["tools", "functions"] {
        if fields.holds_anything(name) {
            let text = format!(
                "{name} are not supported; leave {name} out and describe in the messages what to answer"
            );
            return refuse(name, &text);
        }
    }
    for name in ["logit_bias", "audio", "web_search_options"] {
        if fields.holds_anything(name) {
            return refuse(name, &format!("{name} is not supported; leave it out"));
        }
    }
    match fields.get("tool_choice") {
        None => {}
        Some(Value::String(choice)) if choice == "none" || choice == "auto" => {}
        Some(_) => return refuse("tool_choice", "tools are not supported; leave tool_choice out"),
    }
    match fields.get("response_format").map(|format| &format["type"]) {
        None => {}
        Some(Value::String(kind)) if kind == "text" => {}
        Some(_) => {
            let text = "answers are plain text; leave response_format out and ask for JSON in the messages";
            return refuse("response_format", text);
        }
    }
    match fields.get("modalities") {
        None => {}
        Some(Value::Array(kinds)) if kinds.iter().all(|kind| kind == "text") => {}
        Some(_) => return refuse("modalities", "answers are text; leave modalities out"),
    }
    Ok(())
}

/// How tokens are drawn. A client that names no temperature gets what `reprise chat` does, with its repetition penalty;
/// one that does gets no penalty that it did not ask for.
fn sampling(fields: &Fields) -> Result<SamplingOptions, ApiError> {
    let defaults = SamplingOptions::default();
    let seed = match fields.get("seed") {
        None => None,
        Some(seed) => {
            let negative = seed.as_i64().map(|seed| seed as u64);
            let number = seed.as_u64().or(negative);
            Some(number.ok_or_else(|| fields.wrong("seed", "a whole number"))?)
        }
    };
    let temperature = fields.number("temperature", 0.0, 10.0)?;
    let penalty = temperature.map_or(CHAT_REPETITION_PENALTY, |_| 1.0);
    Ok(SamplingOptions {
        temperature: temperature.unwrap_or(CHAT_TEMPERATURE),
        // The smallest set that reaches 0 is the likeliest token alone.
        top_p: fields
            .number("top_p", 0.0, 1.0)?
            .map_or(defaults.top_p, |p| p.max(f32::MIN_POSITIVE)),
        top_k: match fields.whole("top_k", 0)? {
            Some(number) => usize::try_from(number).unwrap_or(0),
            None => defaults.top_k,
        },
        min_p: fields.number("min_p", 0.0, 1.0)?.unwrap_or(defaults.min_p),
        repetition_penalty: match fields.number("repetition_penalty", 0.0, 10.0)? {
            Some(0.0) => return Err(fields.wrong("repetition_penalty", "a number above 0, 1 for none")),
            given => given.unwrap_or(penalty),
        },
        seed,
        ..defaults
    })
}

fn stops(fields: &Fields) -> Result<Vec<String>, ApiError> {
    let wrong = || fields.wrong("stop", "a text or a list of texts, none of them empty");
    let stops = match fields.get("stop") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => list
            .iter()
            .map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(wrong()),
    };
    if stops.iter().any(String::is_empty) {
        return Err(wrong());
    }
    if stops.len() > MOST_STOPS || stops.iter().any(|text| text.chars().count() > MOST_STOP_CHARS) {
        let text = format!("stop takes at most {MOST_STOPS} texts of at most {MOST_STOP_CHARS} characters");
        return Err(ApiError::field("stop", text));
    }
    Ok(stops)
}

fn messages(fields: &Fields) -> Result<Vec<Message>, ApiError> {
    let list = match fields.get("messages") {
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(Value::Array(_)) => return Err(ApiError::field("messages", "messages is empty; ask something")),
        Some(_) => return Err(fields.wrong("messages", "a list of messages")),
        None => return Err(ApiError::field("messages", "messages is missing; ask something")),
    };
    list.iter()
        .enumerate()
        .map(|(index, value)| message(&format!("messages[{index}]"), value))
        .collect()
}

fn message(place: &str, value: &Value) -> Result<Message, ApiError> {
    let known = "system, developer, user or assistant";
    let role = match value["role"].as_str() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => {
            return Err(ApiError::unsupported(
                format!("{place}.role"),
                "tools are not supported; give what they found as a user's message",
            ));
        }
        Some(other) => {
            return Err(ApiError::field(
                format!("{place}.role"),
                format!("\"{other}\" is no role; {known}"),
            ));
        }
        None => {
            return Err(ApiError::field(
                format!("{place}.role"),
                format!("{place} needs a role: {known}"),
            ));
        }
    };
    for name in ["tool_calls", "function_call"] {
        if value
            .get(name)
            .is_some_and(|calls| !calls.is_null() && calls != &Value::Array(Vec::new()))
        {
            return Err(ApiError::unsupported(
                format!("{place}.{name}"),
                "tools are not supported; leave the messages that call them out",
            ));
        }
    }
    let place = format!("{place}.content");
    let parts = match &value["content"] {
        Value::String(text) => vec![text.as_str().into()],
        Value::Null if role == Role::Assistant => vec!["".into()],
        Value::Array(parts) if !parts.is_empty() => {
            let last = parts.len() - 1;
            parts
                .iter()
                .enumerate()
                .map(|(index, part)| {
                    let mut text = part_text(&format!("{place}[{index}]"), part)?.to_owned();
                    // Parts are lines of their own, as other servers join them.
                    if index < last && !text.ends_with('\n') {
                        text.push('\n');
                    }
                    Ok(text.into())
                })
                .collect::<Result<_, ApiError>>()?
        }
        _ => {
            let text = format!("{place} must be a text or a list of text parts");
            return Err(ApiError::field(place, text));
        }
    };
    Ok(Message { role, parts })
}

fn part_text<'a>(place: &str, part: &'a Value) -> Result<&'a str, ApiError> {
    match (part["type"].as_str(), part["text"].as_str()) {
        (Some("text"), Some(text)) => Ok(text),
        (Some("text"), None) => Err(ApiError::field(place, format!("{place}.text must be a text"))),
        (Some("image_url" | "input_image" | "image"), _) => Err(ApiError::unsupported(
            place,
            "images cannot be read yet; send their text, or leave them out",
        )),
        (Some(kind), _) => Err(ApiError::unsupported(
            place,
            format!("parts of type \"{kind}\" cannot be read; send text"),
        )),
        (None, _) => Err(ApiError::field(place, format!("{place} needs a type: text"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parse(value: Value) -> Result<ChatRequest, ApiError> {
        ChatRequest::parse(value.to_string().as_bytes())
    }

    fn with(name: &str, value: Value) -> Result<ChatRequest, ApiError> {
        let mut request = json!({ "messages": [{ "role": "user", "content": "hi" }] });
        request[name] = value;
        parse(request)
    }

    #[test]
    fn a_message_is_a_text_or_parts_that_are_tokenised_on_their_own() {
        let request = parse(json!({ "messages": [
            { "role": "developer", "content": "Be brief." },
            { "role": "user", "content": [
                { "type": "text", "text": "one" },
                { "type": "text", "text": "two\n" },
                { "type": "text", "text": "three" }
            ] },
            { "role": "assistant", "content": null, "tool_calls": [], "refusal": null },
        ] }))
        .unwrap();
        let parts: Vec<(Role, Vec<String>)> = request
            .messages
            .into_iter()
            .map(|message| {
                (
                    message.role,
                    message.parts.into_iter().map(|part| part.text).collect(),
                )
            })
            .collect();
        assert_eq!(
            parts,
            [
                (Role::System, vec!["Be brief.".to_owned()]),
                (Role::User, vec!["one\n".into(), "two\n".into(), "three".into()]),
                (Role::Assistant, vec![String::new()]),
            ]
        );
    }

    #[test]
    fn what_is_not_said_is_as_in_a_chat_and_what_is_unknown_is_passed_over() {
        let request = parse(json!({
            "messages": [{ "role": "user", "content": "hi", "name": "me" }],
            "store": true, "metadata": { "a": "b" }, "reasoning_effort": "low", "n": 1, "stop": null, "tools": [],
            "frequency_penalty": 0, "presence_penalty": 0.0, "logprobs": false, "response_format": { "type": "text" },
            "temperature": null, "anything": { "else": [1, 2] }, "tool_choice": "none", "logit_bias": {},
        }))
        .unwrap();
        assert_eq!(request.sampling.temperature, CHAT_TEMPERATURE);
        assert_eq!(request.sampling.repetition_penalty, CHAT_REPETITION_PENALTY);
        let cool = with("temperature", json!(0)).unwrap();
        assert_eq!(cool.sampling.repetition_penalty, 1.0);
        assert_eq!(
            (request.max_tokens, request.stream, request.user),
            (None, false, None)
        );
    }

    #[test]
    fn the_newer_name_of_a_limit_goes_first() {
        let request = parse(json!({
            "messages": [{ "role": "user", "content": "hi" }],
            "max_tokens": 5, "max_completion_tokens": 7.0, "stream": true, "stream_options": { "include_usage": true },
            "stop": ["a", "b"], "seed": -1, "top_p": 0, "user": " alice "
        }))
        .unwrap();
        assert_eq!(request.max_tokens, Some(7));
        assert!(request.stream && request.include_usage);
        assert_eq!(request.stop, ["a", "b"]);
        assert_eq!(request.sampling.seed, Some(u64::MAX));
        assert!(
            request.sampling.validate().is_ok(),
            "a top_p of 0 is the likeliest token"
        );
        assert_eq!(request.user.as_deref(), Some("alice"));
        assert_eq!(with("user", json!("a\u{1b}[2Jb")).unwrap().user, None);
        assert_eq!(with("user", json!("x".repeat(40))).unwrap().user, None);
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (name, value) in [
            ("n", json!(2)),
            ("logprobs", json!(true)),
            ("frequency_penalty", json!(0.5)),
            ("presence_penalty", json!(-1)),
            ("tools", json!([{ "type": "function" }])),
            ("functions", json!([{ "name": "f" }])),
            ("tool_choice", json!("required")),
            ("response_format", json!({ "type": "json_object" })),
            ("logit_bias", json!({ "5": 100 })),
            ("modalities", json!(["text", "audio"])),
            ("audio", json!({ "voice": "x" })),
        ] {
            let error = with(name, value).unwrap_err();
            assert_eq!(
                (error.status.as_u16(), error.param.as_deref(), error.code),
                (400, Some(name), Some("unsupported_parameter")),
                "{error:?}"
            );
        }
    }

    #[test]
    fn values_that_make_no_sense_name_their_field() {
        for (name, value) in [
            ("temperature", json!("hot")),
            ("temperature", json!(-1)),
            ("top_p", json!(1.5)),
            ("top_k", json!(-1)),
            ("min_p", json!([])),
            ("repetition_penalty", json!(0)),
            ("max_tokens", json!(0)),
            ("max_tokens", json!(1.5)),
            ("max_completion_tokens", json!("many")),
            ("n", json!(0)),
            ("stop", json!("")),
            ("stop", json!([1])),
            ("stop", json!(vec!["x"; 17])),
            ("seed", json!(1.5)),
            ("stream", json!("yes")),
            ("stream_options", json!(1)),
            ("user", json!(1)),
            ("model", json!(1)),
            ("messages", json!([])),
            ("messages", json!({})),
            ("messages", json!(null)),
        ] {
            let error = with(name, value.clone()).unwrap_err();
            assert_eq!(
                (error.status.as_u16(), error.param.as_deref()),
                (400, Some(name)),
                "{value}"
            );
            assert!(error.message.contains(name), "{error:?}");
        }
        for (message, place, words) in [
            (json!({ "content": "x" }), "role", "needs a role"),
            (json!({ "role": "wizard", "content": "x" }), "role", "wizard"),
            (
                json!({ "role": "tool", "content": "x" }),
                "role",
                "tools are not supported",
            ),
            (json!({ "role": "user" }), "content", "a text or a list"),
            (
                json!({ "role": "user", "content": [] }),
                "content",
                "a text or a list",
            ),
            (json!("hello"), "role", "needs a role"),
            (
                json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:," } }] }),
                "content[0]",
                "images cannot be read yet",
            ),
            (
                json!({ "role": "user", "content": [{ "type": "input_audio" }] }),
                "content[0]",
                "input_audio",
            ),
            (
                json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "1" }] }),
                "tool_calls",
                "tools are not supported",
            ),
        ] {
            let error = with("messages", json!([{ "role": "user", "content": "x" }, message])).unwrap_err();
            assert_eq!(
                error.param.as_deref(),
                Some(format!("messages[1].{place}").as_str())
            );
            assert!(error.message.contains(words), "{error:?}");
        }
        for body in ["", "[]", "{", "\u{0}", "{\"messages\": [}"] {
            let error = ChatRequest::parse(body.as_bytes()).unwrap_err();
            assert!(error.message.contains("the JSON of a request"), "{error:?}");
        }
        let deep = format!("{{\"messages\": {}", "[".repeat(100_000));
        assert!(ChatRequest::parse(deep.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
            let _ = ChatRequest::parse(&body);
            let _ = with("messages", json!([{ "role": "user", "content": text }]));
        }
    }
}

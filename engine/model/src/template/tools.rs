//! Tools that a model may call: how they are written into a prompt, and whether a template can do so.

use minijinja::Value;
use minijinja::value::ValueKind;
use serde::Serialize;

use super::{ChatTemplate, Message, Role, TemplateOptions};
use crate::tokenizer::Tokenizer;

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// What a call names it by.
    pub name: String,
    /// What it does, and when it is the right one.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: serde_json::Value,
}

/// Whether a model can be told of tools, and in which form it calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolCalls {
    /// Its template knows nothing of tools.
    No,
    /// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, as Hermes and Qwen models write it.
    Hermes,
    /// In a form that is not understood here.
    OtherForm,
}

impl ChatTemplate {
    /// Whether this template tells the model of tools, found out by telling it of one.
    pub fn tool_calls(&self, tokenizer: &Tokenizer) -> ToolCalls {
        const NAME: &str = "look_up_the_probe";
        let options = TemplateOptions {
            tools: vec![ToolSpec {
                name: NAME.into(),
                description: "Looks something up.".into(),
                parameters: serde_json::json!({"type": "object", "properties": {}}),
            }],
            ..TemplateOptions::ask()
        };
        let messages = [
            Message::new(Role::System, "Be brief."),
            Message::new(Role::User, "Hello"),
        ];
        match self.render(tokenizer, &messages, &options) {
            Ok(prompt) if !prompt.contains(NAME) => ToolCalls::No,
            Ok(prompt) if prompt.contains("<tool_call>") => ToolCalls::Hermes,
            Ok(_) => ToolCalls::OtherForm,
            Err(_) => ToolCalls::No,
        }
    }
}

/// Every text in the tools that `is_steering` says yes to, in a fixed order: those must not be written as they are.
pub(super) fn steering_texts(tools: &[ToolSpec], is_steering: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for tool in tools {
        walk(&Value::from_serialize(tool), &mut |text| {
            if is_steering(text) {
                found.push(text.to_owned());
            }
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The tools as templates expect them; `replaced` gives another text for one that must not be written as it is.
pub(super) fn as_values(tools: &[ToolSpec], replaced: impl Fn(&str) -> Option<String>) -> Value {
    let listed: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let function = Value::from_iter([
                ("name", Value::from(tool.name.as_str())),
                ("description", Value::from(tool.description.as_str())),
                ("parameters", Value::from_serialize(&tool.parameters)),
            ]);
            Value::from_iter([
                ("type", Value::from("function")),
                ("function", replace(&function, &replaced)),
            ])
        })
        .collect();
    // Templates ask whether there are any.
    if listed.is_empty() {
        Value::from(())
    } else {
        Value::from(listed)
    }
}

fn walk(value: &Value, see: &mut impl FnMut(&str)) {
    if let Some(text) = value.as_str() {
        see(text);
    } else if matches!(value.kind(), ValueKind::Map | ValueKind::Seq) {
        for item in value.try_iter().into_iter().flatten() {
            walk(&item, see);
            if value.kind() == ValueKind::Map {
                walk(&value.get_item(&item).unwrap_or_default(), see);
            }
        }
    }
}

fn replace(value: &Value, replaced: &impl Fn(&str) -> Option<String>) -> Value {
    match value.kind() {
        ValueKind::String => value
            .as_str()
            .and_then(replaced)
            .map_or_else(|| value.clone(), Value::from),
        ValueKind::Map => value
            .try_iter()
            .into_iter()
            .flatten()
            .map(|key| {
                let item = value.get_item(&key).unwrap_or_default();
                (replace(&key, replaced), replace(&item, replaced))
            })
            .collect(),
        ValueKind::Seq => value
            .try_iter()
            .into_iter()
            .flatten()
            .map(|item| replace(&item, replaced))
            .collect::<Vec<_>>()
            .into(),
        _ => value.clone(),
    }
}

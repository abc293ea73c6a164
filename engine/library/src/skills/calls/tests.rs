//! Calls as models write them: well, nearly, and not.

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> (String, Vec<Result<ToolCall, BrokenCall>>) {
    let mut parser = CallParser::new(["look", "run_script"]);
    let mut shown = parser.push(text);
    let (rest, calls) = parser.finish();
    shown += &rest;
    (shown, calls)
}

fn names(text: &str) -> Vec<String> {
    let calls = parse(text).1;
    calls
        .into_iter()
        .map(|call| call.map_or_else(|broken| broken.reason, |call| call.name))
        .collect()
}

#[test]
fn calls_are_taken_out_of_the_text() {
    let (shown, calls) = parse(
        "Let me see.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"x<y\"}}\n</tool_call>",
    );
    assert_eq!(shown, "Let me see.\n");
    let call = calls[0].as_ref().unwrap();
    assert_eq!(
        (call.name.as_str(), call.text("at").as_deref()),
        ("look", Some("x<y"))
    );
    assert_eq!(
        names("<tool_call>{\"name\":\"a\"}</tool_call>\n<tool_call>{\"name\":\"b\"}</tool_call>"),
        ["a", "b"]
    );
    assert_eq!(parse("a <b> {c} `d` <tool").0, "a <b> {c} `d` <tool");
}

#[test]
fn what_is_nearly_a_call_is_understood() {
    for text in [
        "<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"a\nb\"}}</tool_call>",
        "<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"b\"}",
        "<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"b\"}</tool_call>",
        "<tool_call>{'name': 'look', 'arguments': {'at': 'b',}}</tool_call>",
        "<tool_call>\n```json\n{\"name\": \"look\", \"arguments\": {}}\n```\n</tool_call>",
        "<tools>{\"type\": \"function\", \"function\": {\"name\": \"look\", \"arguments\": \"{\\\"at\\\": 1}\"}}</tools>",
        "<tool_call>{\"name\": \"look\"} and that is it</tool_call>",
        "```json\n{\"name\": \"look\", \"arguments\": {\"at\": \"}\"}}\n```",
        "I will look:\n\n  {\n \"name\" : \"look\", \"arguments\": {}}",
        "<tool_call>[{\"name\": \"look\"}]</tool_call>",
    ] {
        assert_eq!(names(text), ["look"], "{text}");
    }
    let (shown, calls) = parse("First\n```json\n{\"name\": \"look\", \"arguments\": {}}\n```\nThen.");
    assert_eq!((shown.as_str(), calls.len()), ("First\n\nThen.", 1));
}

#[test]
fn what_is_no_call_is_shown_or_told() {
    for text in [
        "```json\n{\"name\": \"Ana\", \"age\": 7}\n```\n",
        "{\"name\": \"looks\"}",
        "{\"names\": 1}",
        "see {\"name\": \"look\"}",
        "```rust\nfn main() {}\n```",
        "``",
    ] {
        assert_eq!(parse(text), (text.to_owned(), vec![]), "{text}");
    }
    assert_eq!(names("<tool_call></tool_call>"), ["it is empty"]);
    assert_eq!(names("<tool_call>look at it</tool_call>"), ["it is not JSON"]);
    assert_eq!(names("<tool_call>{\"at\": 1}</tool_call>"), ["it names no tool"]);
    assert_eq!(
        names("<tool_call>{\"name\": \"look\", \"arguments\": [1]}</tool_call>"),
        ["its arguments are no object"]
    );
    let long = format!("<tool_call>{}", "x".repeat(2 * MAX_CALL_BYTES));
    let (_, calls) = parse(&long);
    assert!(calls[0].as_ref().unwrap_err().text.len() <= SHOWN_CHARS);
}

#[test]
fn nothing_of_a_call_is_shown_while_it_comes() {
    let text = "Hm.\n```json\n{\"name\": \"look\", \"arguments\": {}}\n```";
    let mut parser = CallParser::new(["look"]);
    let shown: String = text.chars().map(|c| parser.push(&c.to_string())).collect();
    assert_eq!(shown, "Hm.\n");
    assert!(parser.has_calls());
}

/// Texts that are mostly made of what the parser looks at.
fn pieces() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "<tool_call>",
        "</tool_call>",
        "<tools>",
        "</tools>",
        "{\"name\": \"look\"",
        ", \"arguments\": {\"a\": 1}}",
        "```",
        "```json\n",
        "\n",
        " ",
        "{",
        "}",
        "\"",
        "\\",
        "<",
        "tool",
        "é",
        "text",
        "[",
        "]",
        "'",
        "`",
        "\"name\"",
        ":",
        "\"look\"",
    ]);
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn how_the_text_is_cut_changes_nothing(text in pieces(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let whole = parse(&text);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        ends.retain(|&end| text.is_char_boundary(end));
        ends.push(text.len());
        ends.sort_unstable();
        let mut parser = CallParser::new(["look", "run_script"]);
        let (mut shown, mut at) = (String::new(), 0);
        for end in ends {
            shown += &parser.push(&text[at..end]);
            at = end;
        }
        let (rest, calls) = parser.finish();
        prop_assert_eq!((shown + &rest, calls), whole);
        let mut one = CallParser::new(["look", "run_script"]);
        let mut shown: String = text.chars().map(|c| one.push(&c.to_string())).collect();
        let (rest, calls) = one.finish();
        shown += &rest;
        prop_assert_eq!((shown, calls), parse(&text));
    }

    #[test]
    fn no_text_makes_it_panic_and_text_without_marks_is_shown(text in "\\PC{0,60}") {
        let text: String = text;
        let (shown, calls) = parse(&text);
        if !text.contains(['<', '{']) {
            prop_assert_eq!(shown, text);
            prop_assert!(calls.is_empty());
        }
    }
}

//! A chat of many turns that goes on after restarts: each run of this program is one. The first run in a folder imports turns of
//! a conversation (JSON lines with `speakers` and `sessions` of `turns`); every run asks the chat something and tells what of
//! the prompt was known.
//!
//! ```text
//! cargo run --release -p reprise-library --example long_chat -- FOLDER locomo.jsonl "When did she go there?"
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use reprise_engine::{CancelToken, GenerateOptions, LoadOptions, SamplingOptions, StoreChoice};
use reprise_library::assistant::Assistant;
use reprise_library::chats::{ChatId, ChatStore, Origin};
use reprise_library::converse::{AnswerRequest, Instructions, TokenCounts};
use reprise_library::inspection::Readings;
use reprise_library::models::Shelf;
use serde_json::{Value, json};

/// Turns that are imported.
const TURNS: usize = 600;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, conversations, question] = arguments.as_slice() else {
        return Err("a folder, a file of conversations and a question are needed".into());
    };
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    let (chats, _) = ChatStore::open(folder.join("chats.sqlite"))?;
    let chat = match chats.list()?.chats.first() {
        Some(chat) => chat.id,
        None => import(&chats, Path::new(conversations))?,
    };
    let options = LoadOptions {
        store: Some(StoreChoice {
            folder: folder.join("kv"),
            budget_bytes: Some(2 << 30),
            memory_bytes: None,
        }),
        ..LoadOptions::default()
    };
    let assistant = Assistant::load(&Shelf::of_machine()?.resolve(None)?, &options)?;
    let last = chats.chat(chat)?.turns.last().map(|turn| turn.id);
    let asked = chats.add_user_turn(chat, last, question)?;
    let turn = chats.begin_answer(asked.id, "default")?.id;
    let answered = AnswerRequest {
        store: &chats,
        counts: &TokenCounts::default(),
        turn,
        instructions: &Instructions {
            system: "You are a friend who remembers what was said.".into(),
            options: GenerateOptions {
                sampling: SamplingOptions::greedy(),
                max_tokens: 48,
                ..GenerateOptions::default()
            },
            tools_tokens: 0,
        },
        cancel: &CancelToken::default(),
        readings: &Readings::default(),
        is_put_off: &AtomicBool::new(false),
    }
    .answer(&assistant, &mut |_| ())?
    .ok_or("the answer was put off")?;
    let stats = answered.stats.ok_or("the answer has no figures")?;
    let turns = chats.chat(chat)?.turns.len();
    let given = chats.given_up_to(turn)?.remove(&asked.id).unwrap_or_default();
    let earlier = given
        .iter()
        .filter(|one| matches!(one.source, Origin::Earlier { .. }))
        .count();
    println!(
        "turns {turns}; prompt {} tokens: {} known as prefix, {} from elsewhere, {} new; first token after {} ms",
        stats.prompt_tokens,
        stats.reused_prefix_tokens,
        stats.reused_elsewhere_tokens,
        stats.prompt_tokens - stats.reused_prefix_tokens - stats.reused_elsewhere_tokens,
        stats.first_token_ms
    );
    println!("exchanges found again: {earlier}");
    for one in &given {
        println!("  {}", one.text.trim().replace('\n', " | "));
    }
    println!("{}", answered.text.trim());
    Ok(())
}

/// The turns of conversations, one speaker asking and the other one answering.
fn import(chats: &ChatStore, file: &Path) -> Result<ChatId, Box<dyn Error>> {
    let mut turns: Vec<Value> = Vec::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let conversation: Value = serde_json::from_str(line)?;
        let asks = conversation["speakers"][0].clone();
        let said = conversation["sessions"].as_array().into_iter().flatten();
        for said in said.flat_map(|session| session["turns"].as_array().into_iter().flatten()) {
            let role = if said["speaker"] == asks {
                "user"
            } else {
                "assistant"
            };
            let text = said["text"].as_str().unwrap_or_default();
            let count = turns.len();
            match turns.last_mut() {
                // Roles alternate; who goes on speaking goes on in the same turn.
                Some(last) if last["role"] == role => {
                    last["text"] = format!("{} {text}", last["text"].as_str().unwrap_or_default()).into();
                }
                None if role == "assistant" => {}
                _ if count == TURNS => break,
                _ => turns.push(json!({
                    "parent": count.checked_sub(1),
                    "role": role,
                    "text": text,
                    "state": "done",
                    "createdMs": 1_700_000_000_000_i64 + count as i64 * 60_000,
                })),
            }
        }
    }
    // An answer stands last.
    if turns.last().is_some_and(|turn| turn["role"] == "user") {
        turns.pop();
    }
    println!("imported {} turns", turns.len());
    let chat = json!({
        "format": "reprise-chat",
        "version": 1,
        "title": "A long friendship",
        "createdMs": 1_700_000_000_000_i64,
        "current": turns.len() - 1,
        "turns": turns,
    });
    Ok(chats.import_json(&chat.to_string())?.id)
}

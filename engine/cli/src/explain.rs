//! `reprise explain`: how a question about documents, or the prompt of a chat's last answer, would be read: what is known of
//! it, what would be moved, what computed.

use reprise_engine::explain::{Explanation, Origin, Purpose, Span};
use reprise_engine::{GenerateOptions, LayerKind, Reuse, Segment, SegmentKind};
use reprise_library::assistant::LaidOut;
use reprise_library::chats::Role;
use reprise_library::converse::{ANSWER_TOKENS, Instructions, TokenCounts, WINDOW_SETTINGS, prompt_before};
use reprise_library::files::in_a_line;
use reprise_library::models::Shelf;
use serde::Deserialize;
use serde_json::json;

use crate::arguments::{AskArguments, ExplainArguments};
use crate::ask::prepare;
use crate::chats;
use crate::failure::{Failure, Outcome};
use crate::output::{counted, print, with_commas};
use crate::session::Session;

/// Tokens of text shown where the prompt begins to differ.
const SHOWN_TOKENS: usize = 12;

pub fn run(arguments: &ExplainArguments) -> Outcome {
    let (session, laid_out) = match &arguments.chat {
        Some(chat) => of_chat(&arguments.ask, chat)?,
        None => {
            let prepared = prepare("explain", &arguments.ask)?;
            (prepared.session, prepared.laid_out)
        }
    };
    let explanation = session.explain(&laid_out)?;
    let at = explanation.prefix_tokens;
    let next = &laid_out.tokens[at..(at + SHOWN_TOKENS).min(laid_out.tokens.len())];
    let next = session.text_of(next);
    let text = match arguments.json {
        true => format!(
            "{}\n",
            serde_json::to_string_pretty(&row(
                &explanation,
                &laid_out.segments,
                &next,
                &session.info().layers
            ))?
        ),
        false => {
            let layers = layer_words(&session.info().layers);
            words(&explanation, &laid_out.segments, &next) + &layers
        }
    };
    print(&text)
}

/// Of what the person chose in the window, what its prompts depend on.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Chosen {
    system_prompt: String,
    model: Option<String>,
    context_tokens: Option<usize>,
    max_answer_tokens: usize,
}

impl Default for Chosen {
    fn default() -> Chosen {
        Chosen {
            system_prompt: String::new(),
            model: None,
            context_tokens: None,
            max_answer_tokens: ANSWER_TOKENS,
        }
    }
}

/// The prompt of a chat's last answer, and the model that the window reads it with.
fn of_chat(arguments: &AskArguments, wanted: &str) -> Outcome<(Session, LaidOut)> {
    let (store, _lock) = chats::open()?;
    let chat = chats::named(&store.list()?.chats, wanted)?.id;
    let turns = store.chat(chat)?.turns;
    let answer = turns.iter().rfind(|turn| turn.role == Role::Assistant);
    let answer = answer.ok_or_else(|| Failure::message(format!("the chat {wanted:?} has no answer yet")))?;
    let chosen = match store.setting(WINDOW_SETTINGS)? {
        Some(kept) => serde_json::from_value(kept)?,
        None => Chosen::default(),
    };
    let model = arguments.model.model.as_deref().or(chosen.model.as_deref());
    let model = Shelf::of_machine()?.resolve(model)?;
    let mut options = arguments
        .keep
        .applied(arguments.model.load_options(false), Reuse::default());
    options.context_tokens = options.context_tokens.or(chosen.context_tokens);
    let session = Session::load("explain", &model, &options, arguments.answer.quiet)?;
    let instructions = Instructions {
        system: chosen.system_prompt,
        options: GenerateOptions {
            max_tokens: chosen.max_answer_tokens,
            ..GenerateOptions::default()
        },
        ..Instructions::default()
    };
    let counts = TokenCounts::default();
    let laid_out = prompt_before(&store, session.writer(), &counts, answer.id, &instructions)?;
    Ok((session, laid_out))
}

/// How a stretch is obtained.
fn how(span: &Span, exact_tokens: usize) -> (&'static str, String) {
    match &span.origin {
        Origin::Pool => ("in the pool", String::new()),
        Origin::Stored { chunk } if span.tokens.end <= exact_tokens => {
            ("stored, exact", format!("chunk {chunk}"))
        }
        Origin::Stored { chunk } => ("stored, moved", format!("chunk {chunk}")),
        Origin::Moved { chunk, of } => ("moved", format!("chunk {chunk}, tokens {}-{}", of.start, of.end)),
        Origin::New => ("computed", String::new()),
    }
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Read => "read tokens",
        Purpose::FillIn => "compute new tokens between known ones",
        Purpose::Probe => "ask what the question attends to, in two thirds of the layers",
        Purpose::Recompute => "compute new and chosen known tokens at their places",
    }
}

fn kind(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::System => "system",
        SegmentKind::Skill => "skill",
        SegmentKind::Passage => "passage",
        SegmentKind::Turn => "turn",
        SegmentKind::Question => "question",
    }
}

/// What a stretch belongs to: the segment in which it begins.
fn segment_of<'a>(span: &Span, segments: &'a [Segment]) -> Option<&'a Segment> {
    let mut end = 0;
    segments.iter().find(|segment| {
        end += segment.tokens;
        span.tokens.start < end
    })
}

fn shown(segment: Option<&Segment>) -> String {
    segment.map_or(String::new(), |segment| match &segment.owner {
        Some(owner) => format!("{} of {}", kind(segment.kind), in_a_line(&owner.to_string())),
        None => kind(segment.kind).to_owned(),
    })
}

fn words(explanation: &Explanation, segments: &[Segment], next: &str) -> String {
    let mut text = format!(
        "{:>13}  {:>6}  {:13}  {:40}  FROM\n",
        "TOKENS", "COUNT", "HOW", "IN"
    );
    for span in &explanation.spans {
        let (how, from) = how(span, explanation.exact_tokens);
        let line = format!(
            "{:>6}-{:<6}  {:>6}  {how:13}  {:40}  {from}",
            span.tokens.start,
            span.tokens.end,
            span.tokens.len(),
            shown(segment_of(span, segments))
        );
        text += line.trim_end();
        text.push('\n');
    }
    let total = explanation.spans.last().map_or(0, |span| span.tokens.end);
    text += &format!(
        "\n{} of {} are known as they stand; what follows is new there: {next:?}\n",
        with_commas(explanation.prefix_tokens),
        counted(total, "token")
    );
    if explanation.moved_tokens > 0 {
        text += &format!(
            "{} are moved, and {} of them computed again\n",
            with_commas(explanation.moved_tokens),
            with_commas(explanation.recomputed_tokens)
        );
    }
    text += "calls:\n";
    for call in &explanation.calls {
        text += &format!("{:>8}  {}\n", counted(call.rows, "token"), purpose(call.purpose));
    }
    text
}

/// What the model's layers see of a prompt.
fn layer_words(kinds: &[LayerKind]) -> String {
    let kind = |kind: &LayerKind| match kind.window_tokens {
        None => format!("{} see all of it", with_commas(kind.count)),
        Some(window) => format!(
            "{} see the last {}",
            with_commas(kind.count),
            counted(window, "token")
        ),
    };
    let count: usize = kinds.iter().map(|kind| kind.count).sum();
    let all: Vec<_> = kinds.iter().map(kind).collect();
    format!(
        "of {}, {}; keys can be moved in all of them\n",
        counted(count, "layer"),
        all.join(" and ")
    )
}

fn row(
    explanation: &Explanation,
    segments: &[Segment],
    next: &str,
    layers: &[LayerKind],
) -> serde_json::Value {
    let spans: Vec<_> = explanation
        .spans
        .iter()
        .map(|span| {
            let (how, from) = how(span, explanation.exact_tokens);
            json!({
                "from": span.tokens.start,
                "to": span.tokens.end,
                "how": how,
                "source": from,
                "segment": shown(segment_of(span, segments)),
            })
        })
        .collect();
    let calls: Vec<_> = explanation
        .calls
        .iter()
        .map(|call| json!({ "tokens": call.rows, "purpose": purpose(call.purpose) }))
        .collect();
    json!({
        "spans": spans,
        "prefix_tokens": explanation.prefix_tokens,
        "differs_at": next,
        "moved_tokens": explanation.moved_tokens,
        "recomputed_tokens": explanation.recomputed_tokens,
        "calls": calls,
        "layers": layers
            .iter()
            .map(|kind| json!({
                "count": kind.count,
                "window_tokens": kind.window_tokens,
                "rope_base": kind.rope_base,
            }))
            .collect::<Vec<_>>(),
    })
}

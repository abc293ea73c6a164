//! Requests from beginning to end, on small models with random weights: what is answered makes no sense, but must be
//! the same whenever it should be.

use reprise_engine::{
    Answer, CancelToken, Engine, EngineError, Event, GenerateOptions, LoadOptions, SamplingOptions,
    StopReason,
};
use std::path::PathBuf;

fn tiny() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/tiny/tiny-llama3-q4_k.gguf")
}

fn engine(context_tokens: usize) -> Engine {
    Engine::load(
        &tiny(),
        &LoadOptions {
            threads: Some(2),
            context_tokens: Some(context_tokens),
            ..LoadOptions::default()
        },
    )
    .unwrap()
}

fn options(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        sampling: SamplingOptions::greedy(),
        max_tokens,
        ..GenerateOptions::default()
    }
}

fn ask(engine: &Engine, prompt: &[u32], options: &GenerateOptions) -> Answer {
    engine
        .generate(prompt, options, &CancelToken::default(), &mut |_| ())
        .unwrap()
}

fn prompt(count: u32) -> Vec<u32> {
    (0..count).map(|i| 3 + i * 31 % 250).collect()
}

#[test]
fn a_warm_start_reuses_the_common_beginning_and_answers_the_same() {
    let warm = engine(512);
    let first = ask(&warm, &prompt(120), &options(20));
    assert_eq!(first.reused_tokens, 0);
    let mut longer = prompt(100);
    longer.extend([7, 8, 9]);
    let second = ask(&warm, &longer, &options(20));
    assert_eq!(second.reused_tokens, 100);
    let cold = ask(&engine(512), &longer, &options(20));
    assert_eq!(second.text, cold.text);
    let again = ask(&warm, &longer, &options(20));
    assert_eq!((again.reused_tokens, again.text), (102, cold.text));
}

#[test]
fn text_streams_in_the_order_and_whole() {
    let mut streamed = String::new();
    let mut progress = Vec::new();
    let answer = engine(512)
        .generate(
            &prompt(60),
            &options(30),
            &CancelToken::default(),
            &mut |event| match event {
                Event::Text(text) => streamed.push_str(text),
                Event::Prefill {
                    done_tokens,
                    total_tokens,
                    ..
                } => progress.push((done_tokens, total_tokens)),
            },
        )
        .unwrap();
    assert_eq!(streamed, answer.text);
    assert_eq!(progress.first(), Some(&(0, 60)));
    assert_eq!(progress.last(), Some(&(60, 60)));
}

#[test]
fn cancelling_keeps_what_was_read_and_written() {
    let engine = engine(512);
    let cancel = CancelToken::default();
    let mut pieces = 0;
    let answer = engine
        .generate(&prompt(50), &options(200), &cancel, &mut |event| {
            if matches!(event, Event::Text(_)) {
                pieces += 1;
                if pieces == 3 {
                    cancel.cancel();
                }
            }
        })
        .unwrap();
    assert_eq!(answer.stop, StopReason::Cancelled);
    let next = ask(&engine, &prompt(50), &options(5));
    assert_eq!(next.reused_tokens, 49);

    let cancelled = CancelToken::default();
    cancelled.cancel();
    let answer = engine
        .generate(&prompt(80), &options(5), &cancelled, &mut |_| ())
        .unwrap();
    assert_eq!((answer.stop, answer.answer_tokens), (StopReason::Cancelled, 0));
}

#[test]
fn the_same_seed_answers_the_same_and_others_differ() {
    let engine = engine(512);
    let with_seed = |seed| {
        let sampling = SamplingOptions {
            temperature: 1.5,
            seed: Some(seed),
            ..SamplingOptions::default()
        };
        ask(
            &engine,
            &prompt(30),
            &GenerateOptions {
                sampling,
                ..options(40)
            },
        )
        .text
    };
    let first = with_seed(1);
    assert_eq!(first, with_seed(1));
    assert_ne!(first, with_seed(2));
}

#[test]
fn a_stop_string_ends_the_answer_before_it() {
    let engine = engine(512);
    let whole = ask(&engine, &prompt(30), &options(40)).text;
    let chars: Vec<char> = whole.chars().collect();
    let stop: String = chars[chars.len() / 2..chars.len() / 2 + 2].iter().collect();
    let at = whole.find(&stop).unwrap();
    let answer = ask(
        &engine,
        &prompt(30),
        &GenerateOptions {
            stop: vec![stop.clone()],
            ..options(40)
        },
    );
    assert_eq!(answer.stop, StopReason::StopString(stop));
    assert_eq!(answer.text, whole[..at]);
}

#[test]
fn the_window_bounds_prompt_and_answer() {
    let engine = engine(64);
    match engine.generate(&prompt(70), &options(5), &CancelToken::default(), &mut |_| ()) {
        Err(
            error @ EngineError::PromptTooLong {
                prompt_tokens: 70,
                window: 63,
            },
        ) => {
            assert!(
                error.to_string().contains("7 more than the window of 63"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    let empty = engine
        .generate(&[], &options(5), &CancelToken::default(), &mut |_| ())
        .unwrap_err();
    assert!(matches!(empty, EngineError::EmptyPrompt));
    let mut seeded = options(1_000);
    seeded.sampling = SamplingOptions {
        temperature: 2.0,
        top_k: 0,
        seed: Some(3),
        ..SamplingOptions::default()
    };
    let answer = ask(&engine, &prompt(60), &seeded);
    assert!(
        matches!(answer.stop, StopReason::WindowFull | StopReason::EndOfTurn),
        "{:?}",
        answer.stop
    );
    assert!(answer.answer_tokens <= 4);
}

#[test]
fn a_window_larger_than_the_models_is_refused() {
    let options = LoadOptions {
        threads: Some(1),
        context_tokens: Some(usize::MAX),
        ..LoadOptions::default()
    };
    let error = Engine::load(&tiny(), &options).err().unwrap();
    assert!(error.to_string().contains("trained for"), "{error}");
}

#[test]
fn a_scratch_request_leaves_what_is_kept_as_it_was() {
    let disturbed = engine(512);
    let other = engine(512);
    for engine in [&disturbed, &other] {
        ask(engine, &prompt(60), &options(10));
    }
    let aside = ask(
        &disturbed,
        &prompt(30)[5..],
        &GenerateOptions {
            scratch: true,
            ..options(12)
        },
    );
    assert_eq!((aside.reused_tokens, aside.answer_tokens), (0, 12));
    let next = ask(&disturbed, &prompt(90), &options(10));
    let undisturbed = ask(&other, &prompt(90), &options(10));
    assert_eq!((next.reused_tokens, &next.text), (60, &undisturbed.text));
}

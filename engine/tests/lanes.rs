//! Requests side by side: each gets the answer it would get alone, nothing leaks, and memory is kept within its bounds.
//!
//! The models have random weights: what they say makes no sense, but must be the same whenever it should be.

mod common;

use common::tiny;
use reprise_engine::guard::Footprint;
use reprise_engine::snapshot::{ComponentState, PhaseView};
use reprise_engine::worker::Worker;
use reprise_engine::{
    Answer, CancelToken, Engine, EngineError, Event, GenerateOptions, KvChoice, KvFormat, LoadOptions,
    Request, Residency, SamplingOptions, Speculation, StopReason,
};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

type Outcome = Result<Answer, EngineError>;

fn load(options: LoadOptions) -> Worker {
    Worker::load(
        &tiny("tiny-llama3-q4_k.gguf"),
        &LoadOptions {
            threads: Some(2),
            ..options
        },
    )
    .unwrap()
}

fn worker(context_tokens: usize, pages: Option<usize>) -> Worker {
    let plain = load(LoadOptions {
        context_tokens: Some(context_tokens),
        ..LoadOptions::default()
    });
    match pages {
        None => plain,
        Some(pages) => {
            let budget = (pages * plain.pool().usage().page_bytes) as u64;
            load(LoadOptions {
                context_tokens: Some(context_tokens),
                kv_budget_bytes: Some(budget),
                ..LoadOptions::default()
            })
        }
    }
}

fn options(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        sampling: SamplingOptions::greedy(),
        max_tokens,
        owner: "test".into(),
        ..GenerateOptions::default()
    }
}

fn prompt(seed: usize, len: usize) -> Vec<u32> {
    (0..len)
        .map(|i| (3 + (i * 31 + seed * 17 + i * i % 13) % 250) as u32)
        .collect()
}

/// A request's cancel and its result.
struct Ticket {
    cancel: CancelToken,
    end: Receiver<Outcome>,
    progress: Arc<Mutex<Vec<usize>>>,
}

fn submit(worker: &mut Worker, prompt: Vec<u32>, options: GenerateOptions) -> Ticket {
    let (sender, end) = channel();
    let (cancel, progress) = (CancelToken::default(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&progress);
    worker.submit(Request {
        prompt,
        options,
        cancel: cancel.clone(),
        on_event: Box::new(move |event| {
            if let Event::Prefill { done_tokens, .. } = event {
                seen.lock().unwrap().push(done_tokens);
            }
        }),
        on_end: Box::new(move |result| sender.send(result).unwrap()),
    });
    Ticket {
        cancel,
        end,
        progress,
    }
}

fn run(worker: &mut Worker) {
    while worker.turn() {
        worker.pool().verify().unwrap();
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

#[test]
fn four_lanes_answer_as_each_would_alone() {
    for kv in [
        KvChoice::Profile,
        KvChoice::Uniform {
            keys: KvFormat::Tq4,
            values: KvFormat::Tq4,
        },
    ] {
        let fresh = || {
            load(LoadOptions {
                context_tokens: Some(1_024),
                kv: kv.clone(),
                ..LoadOptions::default()
            })
        };
        let mut together = fresh();
        let requests: Vec<(Vec<u32>, usize)> = [(300, 40), (20, 60), (700, 25), (90, 50), (150, 30)]
            .iter()
            .enumerate()
            .map(|(seed, &(len, answer))| (prompt(seed, len), answer))
            .collect();
        let tickets: Vec<Ticket> = requests
            .iter()
            .map(|(prompt, answer)| submit(&mut together, prompt.clone(), options(*answer)))
            .collect();
        run(&mut together);
        for (ticket, (prompt, answer)) in tickets.iter().zip(&requests) {
            let own = ticket.end.try_recv().unwrap().unwrap();
            let alone = fresh().generate(prompt, &options(*answer)).unwrap();
            assert_eq!(
                (own.text, own.answer_tokens, own.stop),
                (alone.text, alone.answer_tokens, alone.stop)
            );
        }
    }
}

#[test]
fn a_long_prompt_comes_in_small_pieces_while_others_answer_and_in_large_ones_when_alone() {
    let mut worker = worker(1_024, None);
    let answering = submit(&mut worker, prompt(1, 10), options(60));
    worker.turn();
    let reading = submit(&mut worker, prompt(2, 500), options(2));
    run(&mut worker);
    assert!(answering.end.try_recv().unwrap().is_ok());
    let steps = reading.progress.lock().unwrap().clone();
    let pieces: Vec<usize> = steps.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pieces[..3].iter().all(|&piece| piece <= 64), "{pieces:?}");
    assert_eq!(steps.last(), Some(&500));

    let alone = submit(&mut worker, prompt(3, 500), options(2));
    run(&mut worker);
    let steps = alone.progress.lock().unwrap().clone();
    assert!(steps[1] - steps[0] > 64, "{steps:?}");
}

#[test]
fn five_hundred_requests_come_and_go_and_leave_nothing_behind() {
    let mut worker = worker(512, Some(9));
    let mut alone = self::worker(512, None);
    let mut dice = Dice(7);
    let mut waiting: Vec<(Ticket, Vec<u32>, usize)> = Vec::new();
    let (mut whole, mut cancelled) = (0, 0);
    let resident = |worker: &mut Worker| {
        worker.guard_mut().fix(None);
        worker.guard_mut().footprint().resident_bytes
    };
    let mut before = None;
    for round in 0..500 {
        if round == 100 {
            before = resident(&mut worker);
        }
        // Some prompts begin alike, so that pages are shared and copied.
        let (seed, len, answer) = (dice.roll(5), 1 + dice.roll(300), 1 + dice.roll(20));
        let request = prompt(seed, len);
        waiting.push((
            submit(&mut worker, request.clone(), options(answer)),
            request,
            answer,
        ));
        for _ in 0..dice.roll(6) {
            worker.turn();
        }
        if dice.roll(4) == 0 {
            let chosen = dice.roll(waiting.len());
            waiting[chosen].0.cancel.cancel();
        }
        worker.pool().verify().unwrap();
        let usage = worker.pool().usage();
        assert!(usage.used + usage.promised <= usage.total);
        while waiting.len() > 12 {
            worker.turn();
            waiting.retain(|(ticket, request, answer)| {
                let Ok(result) = ticket.end.try_recv() else {
                    return true;
                };
                let own = result.unwrap();
                if own.stop == StopReason::Cancelled {
                    cancelled += 1;
                } else {
                    whole += 1;
                    // Each tenth is checked against a worker of its own.
                    if whole % 10 == 0 {
                        alone.forget();
                        let expected = alone.generate(request, &options(*answer)).unwrap();
                        assert_eq!((own.text, own.stop), (expected.text, expected.stop));
                    }
                }
                false
            });
        }
    }
    run(&mut worker);
    assert!(
        whole > 250 && cancelled > 50,
        "{whole} whole, {cancelled} cancelled"
    );
    let snapshot = worker.snapshot();
    assert_eq!((snapshot.lanes.len(), snapshot.totals.requests), (0, 500));
    worker.forget();
    let usage = worker.pool().usage();
    assert_eq!((usage.used, usage.promised, usage.free), (0, 0, usage.total));
    if let (Some(before), Some(after)) = (before, resident(&mut worker)) {
        assert!(
            after < before + 20_000_000,
            "{before} bytes resident, then {after}"
        );
    }
}

#[test]
fn a_request_leaves_at_every_phase_within_one_call() {
    let mut worker = worker(1_024, None);
    // While it waits: the lanes are full.
    let running: Vec<Ticket> = (0..4)
        .map(|seed| submit(&mut worker, prompt(seed, 40), options(400)))
        .collect();
    worker.turn();
    let queued = submit(&mut worker, prompt(9, 40), options(5));
    queued.cancel.cancel();
    worker.turn();
    assert_eq!(
        queued.end.try_recv().unwrap().unwrap().stop,
        StopReason::Cancelled
    );
    // While it answers.
    running.iter().for_each(|ticket| ticket.cancel.cancel());
    worker.turn();
    for ticket in &running {
        assert_eq!(
            ticket.end.try_recv().unwrap().unwrap().stop,
            StopReason::Cancelled
        );
    }
    // While its prompt is read: what was read is kept.
    let reading = submit(&mut worker, prompt(20, 900), options(5));
    worker.turn();
    reading.cancel.cancel();
    assert!(!worker.turn());
    let answer = reading.end.try_recv().unwrap().unwrap();
    assert_eq!((answer.stop, answer.answer_tokens), (StopReason::Cancelled, 0));
    let read = *reading.progress.lock().unwrap().last().unwrap();
    assert!(read > 0 && read < 900);
    assert_eq!(
        worker
            .generate(&prompt(20, 900), &options(2))
            .unwrap()
            .reused_tokens,
        read
    );
}

#[test]
fn what_can_never_fit_is_refused_at_once_with_the_numbers() {
    let mut worker = worker(1_024, Some(2));
    let ticket = submit(&mut worker, prompt(1, 600), options(50));
    match ticket.end.try_recv().unwrap() {
        Err(
            error @ EngineError::DoesNotFit {
                prompt_tokens: 600,
                output_tokens: 50,
                ..
            },
        ) => {
            let page = worker.pool().usage().page_bytes;
            let text = error.to_string();
            assert!(
                [3, 2].map(|pages| pages * page as u64).iter().all(|bytes| {
                    text.contains(&format!("{:.1} MB", bytes.div_ceil(100_000) as f64 / 10.0))
                }),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(worker.generate(&prompt(1, 300), &options(50)).is_ok());
    let error = Worker::load(
        &tiny("tiny-llama3-q4_k.gguf"),
        &LoadOptions {
            kv_budget_bytes: Some(1_000),
            ..LoadOptions::default()
        },
    );
    assert!(matches!(error.err(), Some(EngineError::BudgetTooSmall { .. })));
}

#[test]
fn requests_wait_for_pages_and_kept_work_makes_room() {
    let mut worker = worker(1_024, Some(4));
    // Kept by ended requests: all four pages.
    for seed in 0..2 {
        worker.generate(&prompt(seed, 300), &options(4)).unwrap();
    }
    assert_eq!(worker.pool().usage().used, 4);
    // Two that need three pages each: one after the other.
    let tickets: Vec<Ticket> = (5..7)
        .map(|seed| submit(&mut worker, prompt(seed, 600), options(20)))
        .collect();
    worker.turn();
    let phases: Vec<PhaseView> = worker
        .snapshot()
        .lanes
        .into_iter()
        .map(|lane| lane.phase)
        .collect();
    assert!(
        matches!(phases[0], PhaseView::Prefill { .. } | PhaseView::Decode { .. }),
        "{phases:?}"
    );
    assert!(
        matches!(phases[1], PhaseView::Queued { ahead: 0, .. }),
        "{phases:?}"
    );
    run(&mut worker);
    assert!(
        tickets
            .iter()
            .all(|ticket| ticket.end.try_recv().unwrap().is_ok())
    );
}

#[test]
fn a_scratch_request_keeps_nothing() {
    let mut worker = worker(512, None);
    worker
        .generate(
            &prompt(1, 100),
            &GenerateOptions {
                scratch: true,
                ..options(5)
            },
        )
        .unwrap();
    assert_eq!(worker.pool().usage().used, 0);
    assert_eq!(
        worker
            .generate(&prompt(1, 100), &options(5))
            .unwrap()
            .reused_tokens,
        0
    );
}

#[test]
fn a_prompt_begins_on_the_pages_of_one_that_still_runs() {
    let mut worker = worker(1_024, None);
    let first = submit(&mut worker, prompt(1, 520), options(200));
    while !matches!(worker.snapshot().lanes[0].phase, PhaseView::Decode { .. }) {
        worker.turn();
    }
    let mut longer = prompt(1, 520);
    longer.extend([9, 8, 7]);
    let second = submit(&mut worker, longer.clone(), options(30));
    worker.turn();
    assert!(worker.pool().usage().shared >= 2);
    run(&mut worker);
    let (first, second) = (
        first.end.try_recv().unwrap().unwrap(),
        second.end.try_recv().unwrap().unwrap(),
    );
    assert_eq!(second.reused_tokens, 512, "whole pages");
    let mut fresh = self::worker(1_024, None);
    assert_eq!(
        first.text,
        fresh.generate(&prompt(1, 520), &options(200)).unwrap().text
    );
    fresh.forget();
    assert_eq!(second.text, fresh.generate(&longer, &options(30)).unwrap().text);
}

#[test]
fn guesses_change_no_answer() {
    let fresh = |speculation| {
        load(LoadOptions {
            context_tokens: Some(1_024),
            speculation,
            ..LoadOptions::default()
        })
    };
    // A repetitive prompt, so that there is something to look up; greedy and drawn.
    let repetitive: Vec<u32> = prompt(3, 40).repeat(6);
    let draft = Speculation::DraftModel(tiny("tiny-llama3-q4_k.gguf"));
    for sampling in [
        SamplingOptions::greedy(),
        SamplingOptions {
            temperature: 0.8,
            seed: Some(5),
            ..SamplingOptions::default()
        },
    ] {
        let options = GenerateOptions {
            sampling,
            ..options(120)
        };
        let plain = fresh(Speculation::Off).generate(&repetitive, &options).unwrap();
        for speculation in [Speculation::PromptLookup, draft.clone()] {
            let mut guessing = fresh(speculation.clone());
            guessing.always_guess();
            let answer = guessing.generate(&repetitive, &options).unwrap();
            assert_eq!(
                (&answer.text, answer.answer_tokens),
                (&plain.text, plain.answer_tokens),
                "{speculation:?}"
            );
            let view = guessing.snapshot().speculation;
            assert!(view.guessed > 0, "{speculation:?}");
            if speculation == draft && options.sampling.temperature == 0.0 {
                assert_eq!(view.accepted, view.guessed, "a model guesses itself right");
            }
            guessing.pool().verify().unwrap();
        }
    }
}

#[test]
fn a_draft_model_of_another_vocabulary_is_refused() {
    let options = LoadOptions {
        speculation: Speculation::DraftModel(tiny("tiny-gemma3-f32.gguf")),
        ..LoadOptions::default()
    };
    let error = Worker::load(&tiny("tiny-llama3-q4_k.gguf"), &options)
        .err()
        .unwrap();
    assert!(matches!(error, EngineError::Draft { .. }), "{error}");
}

#[test]
fn the_head_is_away_while_a_long_prompt_is_read_and_back_for_the_answer() {
    let path = tiny("tiny-llama3-q4_k.gguf");
    let options_of = |residency| LoadOptions {
        context_tokens: Some(4_096),
        residency,
        ..LoadOptions::default()
    };
    let trained = Worker::load(&path, &LoadOptions::default())
        .unwrap()
        .info()
        .trained_context_tokens;
    if trained < 4_096 {
        println!("SKIPPED: the model's window is {trained}");
        return;
    }
    let mut lean = load(options_of(Residency::Lean));
    let head = |worker: &mut Worker| {
        let components = worker.snapshot().components;
        components
            .into_iter()
            .find(|component| component.name == "head")
            .unwrap()
    };
    let long = submit(&mut lean, prompt(1, 3_000), options(10));
    lean.turn();
    lean.turn();
    assert_eq!(
        (head(&mut lean).state, head(&mut lean).bytes),
        (ComponentState::Released, 0)
    );
    run(&mut lean);
    assert_eq!(
        head(&mut lean).state,
        ComponentState::Released,
        "nobody needs it any more"
    );
    // While another request answers, it stays.
    let short = submit(&mut lean, prompt(2, 20), options(300));
    lean.turn();
    let second = submit(&mut lean, prompt(3, 3_000), options(10));
    for _ in 0..20 {
        lean.turn();
    }
    assert_eq!(
        (head(&mut lean).state, head(&mut lean).owners),
        (ComponentState::Resident, vec![1])
    );
    run(&mut lean);
    let mut plain = load(options_of(Residency::Auto));
    for (ticket, prompt, answer) in [
        (long, prompt(1, 3_000), 10),
        (short, prompt(2, 20), 300),
        (second, prompt(3, 3_000), 10),
    ] {
        let expected = plain.generate(&prompt, &options(answer)).unwrap();
        assert_eq!(ticket.end.try_recv().unwrap().unwrap().text, expected.text);
    }
}

#[test]
fn the_guard_lets_kept_work_go_first_and_then_refuses_with_the_reason() {
    let mut worker = worker(512, None);
    worker.generate(&prompt(1, 100), &options(5)).unwrap();
    assert!(worker.pool().usage().used > 0);
    let calm = Footprint {
        resident_bytes: Some(100_000_000),
        limit_bytes: 1_000_000_000,
        available_bytes: 8_000_000_000,
        total_bytes: 16_000_000_000,
        stalled_percent: Some(0.0),
    };
    worker.guard_mut().fix(Some(Footprint {
        resident_bytes: Some(999_999_999),
        ..calm
    }));
    let error = worker.generate(&prompt(2, 100), &options(5)).unwrap_err();
    assert!(matches!(error, EngineError::MemoryShort { .. }), "{error}");
    assert!(error.to_string().contains("its limit is 1000 MB"), "{error}");
    assert_eq!(
        worker.pool().usage().used,
        0,
        "what could be made again was let go first"
    );
    assert!(
        worker.snapshot().memory.refusal.is_none(),
        "nothing is wanted now"
    );
    worker.guard_mut().fix(Some(calm));
    assert!(worker.generate(&prompt(2, 100), &options(5)).is_ok());
    assert_eq!(worker.snapshot().totals.refused, 1);
}

#[test]
fn an_answer_beyond_its_guarantee_gives_way_and_says_so() {
    let mut worker = worker(1_024, Some(4));
    worker.guarantee(64);
    // Guaranteed: 200 + 64 tokens, two pages for each. The first needs a third page sooner than the second ends.
    let first = submit(&mut worker, prompt(1, 200), options(800));
    worker.turn();
    let second = submit(&mut worker, prompt(2, 200), options(330));
    run(&mut worker);
    let (first, second) = (
        first.end.try_recv().unwrap().unwrap(),
        second.end.try_recv().unwrap().unwrap(),
    );
    assert_eq!(
        (first.stop, second.stop),
        (StopReason::Capacity, StopReason::MaxTokens)
    );
    assert_eq!(
        first.prompt_tokens + first.answer_tokens,
        513,
        "the 513th would have begun the third page"
    );
}

#[test]
fn the_snapshot_counts_what_is_there() {
    let mut worker = worker(1_024, Some(12));
    worker
        .generate(
            &prompt(1, 300),
            &GenerateOptions {
                owner: "kept chat".into(),
                ..options(3)
            },
        )
        .unwrap();
    let _running = submit(
        &mut worker,
        prompt(2, 600),
        GenerateOptions {
            owner: "running".into(),
            ..options(300)
        },
    );
    for _ in 0..6 {
        worker.turn();
    }
    let snapshot = worker.snapshot();
    let pool = &snapshot.pool;
    assert_eq!(pool.pages, 12);
    assert_eq!(pool.in_use_pages + pool.cached_pages + pool.free_pages, 12);
    assert_eq!(pool.cached_pages, 2);
    assert_eq!(
        pool.map.iter().flatten().count(),
        pool.in_use_pages + pool.cached_pages
    );
    let names: Vec<(&str, bool)> = pool
        .owners
        .iter()
        .map(|owner| (owner.name.as_str(), owner.is_active))
        .collect();
    assert_eq!(names, [("running", true), ("kept chat", false)]);
    assert_eq!(snapshot.lanes.len(), 1);
    assert!(snapshot.memory.kv_bytes > 0 && snapshot.memory.weight_bytes > 0);
    assert_eq!(snapshot.memory.kv_bytes, worker.pool().resident_bytes() as u64);
    let next = worker.snapshot();
    assert!(next.sequence > snapshot.sequence);
}

#[test]
fn many_threads_ask_one_engine() {
    let options_of = || LoadOptions {
        threads: Some(2),
        context_tokens: Some(512),
        ..LoadOptions::default()
    };
    let engine = Engine::load(&tiny("tiny-llama3-q4_k.gguf"), &options_of()).unwrap();
    let texts: Vec<String> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8)
            .map(|seed| {
                let engine = &engine;
                scope.spawn(move || {
                    engine
                        .generate(
                            &prompt(seed, 50 + seed * 20),
                            &options(20),
                            &CancelToken::default(),
                            &mut |_| (),
                        )
                        .unwrap()
                        .text
                })
            })
            .collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut alone = worker(512, None);
    for (seed, text) in texts.iter().enumerate() {
        alone.forget();
        assert_eq!(
            *text,
            alone
                .generate(&prompt(seed, 50 + seed * 20), &options(20))
                .unwrap()
                .text
        );
    }
    assert_eq!(engine.snapshot().totals.requests, 8);
}

#[test]
fn an_engine_that_is_dropped_ends_what_runs() {
    let engine = Engine::load(&tiny("tiny-llama3-q4_k.gguf"), &LoadOptions::default()).unwrap();
    let (sender, end) = channel();
    engine.submit(Request {
        prompt: prompt(1, 2_00),
        options: options(100_000),
        cancel: CancelToken::default(),
        on_event: Box::new(|_| ()),
        on_end: Box::new(move |result| sender.send(result).unwrap()),
    });
    drop(engine);
    assert!(
        end.recv()
            .unwrap()
            .is_ok_and(|answer| answer.stop == StopReason::Cancelled)
    );
}

#[test]
fn scratch_is_the_same_however_long_the_window() {
    let path = tiny("tiny-llama3-q4_k.gguf");
    let trained = Worker::load(&path, &LoadOptions::default())
        .unwrap()
        .info()
        .trained_context_tokens;
    let scratch = |context_tokens| {
        load(LoadOptions {
            context_tokens: Some(context_tokens),
            ..LoadOptions::default()
        })
        .workspace_bytes()
    };
    let (short, long) = (scratch(1_024), scratch(trained.max(1_024)));
    // What is left is one angle a rotary pair for each 256 positions.
    assert!(
        long - short <= trained,
        "{short} bytes for 1,024 tokens, {long} for {trained}"
    );
}

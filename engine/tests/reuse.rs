//! Nothing is read twice: what earlier requests left is found again, in the pool, on disk, and in another order.

mod common;

use common::models;
use reprise_engine::backend::Deviation;
use reprise_engine::guard::Footprint;
use reprise_engine::worker::{AheadText, Worker};
use reprise_engine::{
    Answer, GenerateOptions, LoadOptions, Recompute, Reuse, SamplingOptions, Segment, SegmentKind,
    StoreChoice, Strategy,
};
use reprise_kv::store::{ListOrder, Owner};
use reprise_model::tokenizer::Specials;
use std::path::Path;

const PASSAGES: [&str; 3] = [
    "The lighthouse on the northern cape was built in 1872 by order of the harbour board. Its keeper, Anna Lind, kept a \
     diary of every storm for thirty-one years, and the diary is now in the town's museum. The lamp burned colza oil \
     until 1901, when it was changed to paraffin, and the tower was painted white that same summer.",
    "The town's market is held every second Thursday in the square behind the old church. Fishermen sell herring and \
     flounder there, and the bakers bring rye bread and a cake with cardamom that is made nowhere else. In the winter \
     of 1911 the market was closed for five weeks because the harbour had frozen over.",
    "A railway was planned in 1890 to connect the town with the capital, but the money was spent on the new quay \
     instead. The quay is four hundred metres long and was finished in 1896. To this day people say that the train will \
     come next year, and nobody is surprised that it does not.",
];

/// A prompt with some passages in an order, and its segments.
fn prompt(worker: &Worker, order: &[usize], question: &str) -> (Vec<u32>, Vec<Segment>) {
    let owner = |kind: &str, name: String| Some(Owner::new(kind, name).unwrap());
    let mut parts = vec![(
        SegmentKind::System,
        owner("chat", "1".into()),
        "Answer from the passages.\n\n".to_owned(),
    )];
    for &passage in order {
        parts.push((
            SegmentKind::Passage,
            owner("document", format!("town-{passage}")),
            format!("{}\n\n", PASSAGES[passage]),
        ));
    }
    parts.push((
        SegmentKind::Question,
        owner("chat", "1".into()),
        format!("Question: {question}\nAnswer:"),
    ));
    let (mut tokens, mut segments) = (Vec::new(), Vec::new());
    for (kind, owner, text) in parts {
        let before = tokens.len();
        tokens.extend(worker.tokenizer().encode(&text, Specials::AsText));
        segments.push(Segment {
            kind,
            owner,
            tokens: tokens.len() - before,
        });
    }
    (tokens, segments)
}

fn load(folder: &Path, reuse: Reuse) -> Worker {
    let options = LoadOptions {
        threads: Some(2),
        context_tokens: Some(2_048),
        store: Some(StoreChoice {
            folder: folder.to_owned(),
            budget_bytes: Some(1 << 30),
            memory_bytes: Some(64 << 20),
        }),
        reuse,
        ..LoadOptions::default()
    };
    Worker::load(&models().join("SmolLM2-135M-Instruct.Q4_1.gguf"), &options).unwrap()
}

fn ask(worker: &mut Worker, order: &[usize], question: &str) -> Answer {
    let (tokens, segments) = prompt(worker, order, question);
    let options = GenerateOptions {
        sampling: SamplingOptions::greedy(),
        max_tokens: 24,
        segments,
        ..GenerateOptions::default()
    };
    worker.generate(&tokens, &options).unwrap()
}

const KEEPER: &str = "Who kept the lighthouse?";

#[test]
fn after_a_restart_a_prompt_that_was_read_is_known_to_the_last_token() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = load(folder.path(), Reuse::default());
    let first = ask(&mut worker, &[0, 1, 2], KEEPER);
    assert_eq!(first.reused_tokens, 0);
    drop(worker);

    let mut again = load(folder.path(), Reuse::default());
    let second = ask(&mut again, &[0, 1, 2], KEEPER);
    assert_eq!(
        (second.reused_tokens, second.moved_tokens),
        (first.prompt_tokens - 1, 0)
    );
    assert_eq!(second.text, first.text);
    // Another question about the same: all but the question.
    let other = ask(&mut again, &[0, 1, 2], "When was the quay finished?");
    let question = prompt(&again, &[0, 1, 2], "When was the quay finished?").1[4].tokens;
    assert!(other.reused_tokens >= other.prompt_tokens - question && other.moved_tokens == 0);
    // What the pool holds is enough from then on; and another format finds nothing.
    assert_eq!(ask(&mut again, &[0, 1, 2], KEEPER).text, first.text);
}

/// A worker that has read the passages in their first order, and knows them from the disk alone.
fn acquainted(folder: &Path, reuse: Reuse) -> Worker {
    let mut worker = load(folder, reuse);
    ask(&mut worker, &[0, 1, 2], KEEPER);
    worker.keeper().unwrap().flush();
    worker.forget();
    worker
}

fn unacquainted(order: &[usize]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    ask(&mut load(folder.path(), Reuse::Nothing), order, KEEPER)
}

const STRATEGIES: [Strategy; 5] = [
    Strategy::Nothing,
    Strategy::Heads,
    Strategy::HeadsAndQuery,
    Strategy::Deviation(Deviation::Keys),
    Strategy::Deviation(Deviation::Values),
];

#[test]
fn passages_in_another_order_are_moved_and_a_share_is_computed_again() {
    let plain = unacquainted(&[2, 0, 1]);
    for strategy in STRATEGIES {
        let folder = tempfile::tempdir().unwrap();
        let reuse = Reuse::Anywhere(Recompute {
            strategy,
            ratio: 0.2,
            is_bounded: false,
        });
        let mut worker = acquainted(folder.path(), reuse);
        let moved = ask(&mut worker, &[2, 0, 1], KEEPER);
        let (_, segments) = prompt(&worker, &[2, 0, 1], KEEPER);
        let passages: usize = segments[1..4].iter().map(|segment| segment.tokens).sum();
        assert_eq!(moved.moved_tokens, passages, "{strategy:?}");
        assert_eq!(moved.reused_tokens, segments[0].tokens + passages);
        assert!(!moved.text.is_empty());
        if strategy == Strategy::HeadsAndQuery {
            assert_eq!(
                moved.text.contains("Anna Lind"),
                plain.text.contains("Anna Lind"),
                "{}",
                moved.text
            );
        }
        // What the pool holds of it goes on as a beginning; on disk it is not taken for the passages themselves.
        let next = ask(&mut worker, &[2, 0, 1], KEEPER);
        assert_eq!(
            (next.moved_tokens, next.reused_tokens),
            (0, next.prompt_tokens - 1)
        );
        worker.keeper().unwrap().flush();
        let document = Owner::new("document", "town-2").unwrap();
        let store = worker.keeper().unwrap().store();
        let kept = store.list(Some(&document), ListOrder::Size).unwrap();
        let mut ratios: Vec<f32> = kept
            .iter()
            .map(|chunk| store.record(chunk.id).unwrap().ratio)
            .collect();
        ratios.sort_by(f32::total_cmp);
        let explanation = moved.explanation.unwrap();
        let again: usize = explanation.again.iter().map(|run| run.len()).sum();
        assert_eq!(again, moved.recomputed_tokens);
        assert!(
            explanation
                .again
                .iter()
                .all(|run| segments[0].tokens <= run.start && run.end <= segments[0].tokens + passages)
        );
        let share = again as f32 / passages as f32;
        let wanted = match strategy {
            Strategy::Nothing => 0.0..0.01,
            _ => 0.2..0.25,
        };
        assert!(wanted.contains(&share), "{strategy:?}: {share}");
        assert_eq!(ratios, [share, 1.0]);
    }
}

#[test]
fn what_was_made_of_moved_pieces_serves_no_one_who_wants_the_same_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let plain = unacquainted(&[2, 0, 1]);
    let mut worker = acquainted(folder.path(), Reuse::default());
    assert!(ask(&mut worker, &[2, 0, 1], KEEPER).moved_tokens > 0);
    worker.keeper().unwrap().flush();
    drop(worker);
    // Another run, so that nothing is in the pool.
    let mut worker = load(folder.path(), Reuse::Prefix);
    let exact = ask(&mut worker, &[2, 0, 1], KEEPER);
    let (_, segments) = prompt(&worker, &[2, 0, 1], KEEPER);
    assert!(
        exact.reused_tokens <= segments[0].tokens + segments[1].tokens,
        "{} of {} tokens",
        exact.reused_tokens,
        exact.prompt_tokens
    );
    assert_eq!(exact.text, plain.text);
}

#[test]
fn with_a_ratio_of_one_everything_is_as_if_nothing_were_known() {
    let plain = unacquainted(&[1, 0, 2]);
    for strategy in STRATEGIES {
        let folder = tempfile::tempdir().unwrap();
        let reuse = Reuse::Anywhere(Recompute {
            strategy,
            ratio: 1.0,
            is_bounded: false,
        });
        let mut worker = acquainted(folder.path(), reuse);
        let all = ask(&mut worker, &[1, 0, 2], KEEPER);
        let is_read = strategy != Strategy::Nothing;
        assert_eq!(all.moved_tokens == 0, is_read, "{strategy:?}");
        assert!(!is_read || all.text == plain.text, "{strategy:?}");
    }
}

#[test]
fn segments_that_are_not_the_prompts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = load(folder.path(), Reuse::default());
    let (tokens, mut segments) = prompt(&worker, &[0], KEEPER);
    segments.pop();
    let options = GenerateOptions {
        max_tokens: 1,
        segments,
        ..GenerateOptions::default()
    };
    let error = worker.generate(&tokens, &options).unwrap_err().to_string();
    assert!(error.contains("segments"), "{error}");
}

#[test]
fn a_fault_of_the_store_never_reaches_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = load(folder.path(), Reuse::default());
    let first = ask(&mut worker, &[0, 1, 2], KEEPER);
    drop(worker);
    // Every file is damaged, each in another way.
    for (i, entry) in std::fs::read_dir(folder.path().join("chunks"))
        .unwrap()
        .enumerate()
    {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        match i % 3 {
            0 => bytes.truncate(1_000),
            1 => *bytes.last_mut().unwrap() ^= 1,
            _ => bytes.fill(0),
        }
        std::fs::write(&path, bytes).unwrap();
    }
    let mut again = load(folder.path(), Reuse::default());
    let second = ask(&mut again, &[0, 1, 2], KEEPER);
    // The system text is too small for a file: it stands in the index, which is sound.
    let system = prompt(&again, &[0, 1, 2], KEEPER).1[0].tokens;
    assert_eq!((second.text, second.reused_tokens), (first.text, system));
}

#[test]
fn what_is_erased_right_after_an_answer_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = load(folder.path(), Reuse::default());
    let first = ask(&mut worker, &[0], KEEPER);
    let owner = Owner::new("document", "town-0").unwrap();
    worker.erase(&owner).unwrap();
    let segments = prompt(&worker, &[0], KEEPER).1;
    let again = ask(&mut worker, &[0], KEEPER);
    // The system text is another owner's.
    assert_eq!(
        (again.text, again.reused_tokens),
        (first.text, segments[0].tokens)
    );
    worker.erase(&owner).unwrap();
    worker.keeper().unwrap().flush();
    let owners = worker.keeper().unwrap().store().owners().unwrap();
    assert!(owners.iter().all(|one| one.owner != owner));
    let tiers = worker.snapshot().tiers;
    assert_eq!(tiers.memory.dirty_chunks, 0);
    assert!(tiers.flash.chunks > 0 && tiers.flash.bytes > 0);
}

#[test]
fn when_memory_is_short_chunks_in_memory_go_before_work_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = load(folder.path(), Reuse::default());
    ask(&mut worker, &[0], KEEPER);
    worker.keeper().unwrap().flush();
    let before = worker.snapshot().tiers;
    assert!(before.memory.bytes > 0 && before.memory.dirty_chunks == 0);
    worker.guard_mut().fix(Some(Footprint {
        resident_bytes: Some(2_000_000_000),
        limit_bytes: 1_000_000_000,
        ..Footprint::default()
    }));
    let (tokens, _) = prompt(&worker, &[1], KEEPER);
    let options = GenerateOptions {
        max_tokens: 1,
        ..GenerateOptions::default()
    };
    let error = worker.generate(&tokens, &options).unwrap_err().to_string();
    assert!(error.contains("memory is short"), "{error}");
    let after = worker.snapshot().tiers;
    assert_eq!((after.memory.bytes, after.flash.chunks), (0, before.flash.chunks));
    worker.guard_mut().fix(None);
    let again = ask(&mut worker, &[0], KEEPER);
    assert_eq!(again.reused_tokens, again.prompt_tokens - 1);
}

/// Lets the worker do what it does while nobody asks.
fn rest(worker: &mut Worker) {
    while worker.is_busy() || worker.has_idle_work() {
        match worker.is_busy() {
            true => {
                worker.turn();
            }
            false => worker.idle_turn(),
        }
    }
}

#[test]
fn texts_read_ahead_are_known_and_make_way_for_who_asks() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = load(folder.path(), Reuse::default());
    let ahead = |worker: &Worker, order: &[usize]| {
        let (mut tokens, mut segments) = prompt(worker, order, KEEPER);
        let question = segments.pop().unwrap();
        tokens.truncate(tokens.len() - question.tokens);
        AheadText { tokens, segments }
    };
    let texts = [ahead(&worker, &[0, 1]), ahead(&worker, &[2])];
    let known = texts[0].tokens.len();
    worker.read_ahead(texts);
    assert!(worker.has_idle_work() && worker.texts_ahead() == 2);
    worker.idle_turn();
    assert!(worker.is_busy());
    // Somebody asks about something else: the text leaves, and waits for its turn again.
    let other = ask(&mut worker, &[2], KEEPER);
    assert_eq!((other.reused_tokens, worker.texts_ahead()), (0, 2));
    rest(&mut worker);
    assert_eq!(worker.texts_ahead(), 0);
    let first = ask(&mut worker, &[0, 1], KEEPER);
    assert!(first.reused_tokens >= known && first.moved_tokens == 0);
    // What is known already is not read again.
    let before = worker.snapshot().totals.requests;
    let again = ahead(&worker, &[0, 1]);
    worker.read_ahead([again]);
    rest(&mut worker);
    assert_eq!(
        (worker.snapshot().totals.requests, worker.texts_ahead()),
        (before, 0)
    );
    // Where nothing is kept there is nothing to read ahead for.
    let again = ahead(&worker, &[1]);
    worker.set_reuse(Reuse::Nothing);
    worker.read_ahead([again]);
    assert!(!worker.has_idle_work() && worker.ahead_waits_for().is_some());
}

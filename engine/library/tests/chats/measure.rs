//! How long things take, for a person to read; nothing here fails for being slow.
//!
//! `cargo test -p reprise-library --test chats measure -- --ignored --nocapture`

use std::time::Instant;

use reprise_library::chats::TurnState;

use crate::Bench;
use crate::scale::path_of;

#[test]
#[ignore = "measures"]
fn measure_appending_opening_searching_and_erasing() {
    let mut bench = Bench::new();
    let question = bench.store().begin_chat("a question").unwrap();
    let answer = bench.store().begin_answer(question.id, "a model").unwrap();
    let mut times: Vec<u128> = (0..10_000)
        .map(|_| {
            let begin = Instant::now();
            bench.store().append_piece(answer.id, " word").unwrap();
            begin.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    println!(
        "append_piece: median {:.1} µs, 99 % {:.1} µs, most {:.1} µs",
        times[5_000] as f64 / 1e3,
        times[9_900] as f64 / 1e3,
        times[9_999] as f64 / 1e3
    );
    let timed = |what: &str, job: &mut dyn FnMut()| {
        let begin = Instant::now();
        job();
        println!("{what}: {:.2} ms", begin.elapsed().as_secs_f64() * 1e3);
    };
    timed("finish_answer of 10,000 pieces", &mut || {
        bench
            .store()
            .finish_answer(answer.id, TurnState::Done, None, None)
            .unwrap();
    });
    let chat = path_of(
        &bench,
        1_000,
        &"Some words of a turn that has a usual length. ".repeat(12),
    );
    timed("chat() of 1,000 turns, first", &mut || {
        drop(bench.store().chat(chat).unwrap())
    });
    timed("chat() of 1,000 turns, again", &mut || {
        drop(bench.store().chat(chat).unwrap())
    });
    let last = bench.store().chat(chat).unwrap().turns.pop().unwrap().id;
    timed("add_user_turn", &mut || {
        drop(bench.store().add_user_turn(chat, Some(last), "more").unwrap())
    });
    for _ in 0..50 {
        path_of(
            &bench,
            1_000,
            &"Some words of a turn that has a usual length. ".repeat(12),
        );
    }
    let mib = std::fs::metadata(bench.path()).unwrap().len() >> 20;
    println!("51,000 turns, {mib} MiB");
    timed("list", &mut || drop(bench.store().list().unwrap()));
    timed("search for a frequent word", &mut || {
        drop(bench.store().search("usual", 50).unwrap())
    });
    timed("search for a rare run", &mut || {
        drop(bench.store().search("turn that has nothing", 50).unwrap())
    });
    timed("search for two characters that are nowhere", &mut || {
        drop(bench.store().search("qx", 50).unwrap())
    });
    bench.store().delete_chat(chat).unwrap();
    timed("erase a chat of 1,000 turns", &mut || {
        drop(bench.store().erase_deleted(None).unwrap())
    });
    timed("open", &mut || drop(bench.open()));
}

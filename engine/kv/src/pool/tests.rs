use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// Bytes that each position has in each layer; the second layer keeps nothing, as a recurrent one.
const POSITION_BYTES: [usize; 3] = [8, 0, 16];

pub(super) fn pool(pages: usize) -> PagePool {
    PagePool::new(&POSITION_BYTES.map(|bytes| bytes * PAGE_TOKENS), pages).unwrap()
}

/// Writes a number to a prepared position of every layer.
pub(super) fn write(sequence: &mut Sequence, position: usize, value: u64) {
    assert!((sequence.len()..sequence.prepared()).contains(&position));
    for (layer, bytes) in POSITION_BYTES.into_iter().enumerate() {
        let page = sequence.page_ptr(layer, position / PAGE_TOKENS);
        for at in (0..bytes).step_by(8) {
            let at = position % PAGE_TOKENS * bytes + at;
            assert!(at + 8 <= page.len());
            // SAFETY: inside the page, at a position that is ours to write, with the sequence borrowed exclusively.
            unsafe {
                page.cast::<u8>()
                    .add(at)
                    .cast::<[u8; 8]>()
                    .write(value.to_le_bytes())
            };
        }
    }
}

/// The numbers of all committed positions, which every layer must agree on.
pub(super) fn read(sequence: &Sequence) -> Vec<u64> {
    let mut all: Option<Vec<u64>> = None;
    for (layer, bytes) in POSITION_BYTES
        .into_iter()
        .enumerate()
        .filter(|&(_, bytes)| bytes > 0)
    {
        let mut values = Vec::new();
        for run in sequence.runs(layer, 0..sequence.len()) {
            for position in run.bytes.chunks_exact(bytes).take(run.positions.end) {
                let (numbers, _) = position.as_chunks::<8>();
                assert!(numbers.iter().all(|number| *number == numbers[0]));
                values.push(u64::from_le_bytes(numbers[0]));
            }
        }
        assert_eq!(*all.get_or_insert_with(|| values.clone()), values);
    }
    all.unwrap()
}

/// Prepares, writes and commits positions up to `end`.
fn extend(sequence: &mut Sequence, end: usize, value: u64) {
    sequence.prepare(end, None).unwrap();
    for position in sequence.len()..end {
        write(sequence, position, value);
    }
    sequence.commit(end);
}

#[test]
fn promised_pages_are_free_but_nobody_elses() {
    let pool = pool(4);
    let mut reservation = pool.reserve(3).unwrap();
    assert_eq!(
        (pool.usage().free, pool.usage().promised, pool.usage().spare()),
        (4, 3, 1)
    );
    let error = pool.reserve(2).unwrap_err();
    assert_eq!(
        error,
        PoolError::Exhausted {
            wanted: 2,
            available: 1,
            total: 4
        }
    );
    assert_eq!(
        error.to_string(),
        "2 pages of KV memory are needed, 1 of 4 can be had; shorten the prompt, wait for another request to end or \
         give the KV memory a larger budget"
    );

    let mut other = pool.sequence();
    assert!(other.prepare(257, None).is_err());
    other.prepare(256, None).unwrap();

    let mut owner = pool.sequence();
    owner.prepare(3 * 256, Some(&mut reservation)).unwrap();
    assert_eq!(reservation.pages(), 0);
    assert_eq!((pool.usage().free, pool.usage().promised), (0, 0));
}

#[test]
fn a_dropped_reservation_gives_back_what_was_not_taken() {
    let pool = pool(4);
    let mut reservation = pool.reserve(2).unwrap();
    reservation.grow(1).unwrap();
    assert!(reservation.grow(2).is_err());
    assert_eq!(reservation.pages(), 3);
    let mut sequence = pool.sequence();
    sequence.prepare(1, Some(&mut reservation)).unwrap();
    assert_eq!((reservation.pages(), pool.usage().promised), (2, 2));
    drop(reservation);
    assert_eq!((pool.usage().promised, pool.usage().used), (0, 1));
    assert_eq!(pool.usage().spare(), 3);
}

#[test]
fn beyond_its_reservation_a_sequence_takes_spare_pages() {
    let pool = pool(4);
    let _other = pool.reserve(1).unwrap();
    let mut reservation = pool.reserve(1).unwrap();
    let mut sequence = pool.sequence();
    sequence.prepare(3 * 256, Some(&mut reservation)).unwrap();
    assert_eq!(
        (reservation.pages(), pool.usage().promised, pool.usage().spare()),
        (0, 1, 0)
    );
}

#[test]
fn a_prepare_that_fails_changes_nothing() {
    let pool = pool(3);
    let mut reservation = pool.reserve(1).unwrap();
    let mut sequence = pool.sequence();
    extend(&mut sequence, 100, 7);
    let fork = sequence.fork(100);
    let (usage, pages) = (pool.usage(), sequence.pages().to_vec());
    // Three more pages and the copy of the shared one.
    assert_eq!(
        sequence.prepare(1_000, Some(&mut reservation)),
        Err(PoolError::Exhausted {
            wanted: 4,
            available: 2,
            total: 3
        })
    );
    assert!(sequence.prepare(usize::MAX, None).is_err());
    assert_eq!((pool.usage(), sequence.pages()), (usage, &pages[..]));
    assert_eq!((reservation.pages(), sequence.prepared()), (1, 100));
    assert_eq!((read(&sequence), read(&fork)), (vec![7; 100], vec![7; 100]));
}

#[test]
fn a_fork_shares_pages_until_either_writes_on() {
    for parent_writes in [true, false] {
        let pool = pool(8);
        let mut parent = pool.sequence();
        extend(&mut parent, 600, 1);
        let mut fork = parent.fork(600);
        assert_eq!((pool.usage().used, pool.usage().shared), (3, 3));
        assert_eq!(pool.map(), [2, 2, 2, 0, 0, 0, 0, 0]);

        let (writer, reader) = if parent_writes {
            (&mut parent, &mut fork)
        } else {
            (&mut fork, &mut parent)
        };
        extend(writer, 601, 2);
        assert_eq!((pool.usage().used, pool.usage().shared), (4, 2));
        // The other one is alone with the original now, and writes on in place.
        extend(reader, 601, 3);
        assert_eq!(pool.usage().used, 4);
        assert_eq!(read(writer), [vec![1; 600], vec![2]].concat());
        assert_eq!(read(reader), [vec![1; 600], vec![3]].concat());
    }
}

#[test]
fn a_fork_at_the_end_of_a_page_needs_no_copy() {
    let pool = pool(8);
    let mut parent = pool.sequence();
    extend(&mut parent, 600, 1);
    let mut fork = parent.fork(512);
    extend(&mut fork, 513, 2);
    extend(&mut parent, 601, 3);
    assert_eq!(pool.map(), [2, 2, 1, 1, 0, 0, 0, 0]);
    assert_eq!(read(&fork), [vec![1; 512], vec![2]].concat());
    assert_eq!(read(&parent), [vec![1; 600], vec![3]].concat());
}

#[test]
fn truncating_into_a_shared_page_copies_it_before_the_next_write() {
    let pool = pool(8);
    let mut parent = pool.sequence();
    extend(&mut parent, 600, 1);
    let fork = parent.fork(600);
    parent.truncate(300);
    assert_eq!(pool.map(), [2, 2, 1, 0, 0, 0, 0, 0]);
    extend(&mut parent, 400, 2);
    assert_eq!(read(&fork), [1; 600]);
    assert_eq!(read(&parent), [vec![1; 300], vec![2; 100]].concat());
}

#[test]
fn a_page_that_is_no_longer_shared_is_not_copied() {
    let pool = pool(1);
    let mut sequence = pool.sequence();
    extend(&mut sequence, 100, 1);
    let fork = sequence.fork(50);
    assert!(sequence.prepare(101, None).is_err(), "the copy needs a page");
    drop(fork);
    extend(&mut sequence, 101, 1);
    assert_eq!(pool.usage().used, 1);
}

#[test]
fn a_fork_between_prepare_and_write_asks_for_another_prepare() {
    let pool = pool(4);
    let mut parent = pool.sequence();
    extend(&mut parent, 260, 1);
    parent.prepare(300, None).unwrap();
    write(&mut parent, 260, 2);
    let fork = parent.fork(260);
    assert_eq!(parent.prepared(), 260);
    parent.prepare(300, None).unwrap();
    assert_eq!(parent.prepared(), 300);
    write(&mut parent, 261, 3);
    parent.commit(262);
    assert_eq!(read(&parent), [vec![1; 260], vec![2, 3]].concat());
    assert_eq!(read(&fork), [1; 260]);
}

#[test]
fn cancelled_pages_are_spare_and_do_not_return_to_the_reservation() {
    let pool = pool(4);
    let mut reservation = pool.reserve(3).unwrap();
    let mut sequence = pool.sequence();
    sequence.prepare(700, Some(&mut reservation)).unwrap();
    sequence.commit(200);
    sequence.cancel();
    assert_eq!(
        (sequence.len(), sequence.prepared(), sequence.pages().len()),
        (200, 200, 1)
    );
    assert_eq!((reservation.pages(), pool.usage().spare()), (0, 3));
}

#[test]
fn truncate_forgets_committed_and_prepared_positions() {
    let pool = pool(4);
    let mut sequence = pool.sequence();
    extend(&mut sequence, 600, 1);
    sequence.prepare(800, None).unwrap();
    sequence.truncate(600);
    assert_eq!((sequence.len(), sequence.prepared()), (600, 800));
    sequence.truncate(256);
    assert_eq!(
        (sequence.len(), sequence.prepared(), sequence.pages().len()),
        (256, 256, 1)
    );
    sequence.truncate(0);
    assert!(sequence.is_empty() && sequence.pages().is_empty());
    assert_eq!((pool.usage().used, pool.usage().high_water), (0, 4));
}

#[test]
fn runs_are_the_parts_of_pages_that_a_range_covers() {
    let pool = pool(4);
    let mut sequence = pool.sequence();
    extend(&mut sequence, 600, 1);
    let runs = |range| -> Vec<_> { sequence.runs(0, range).map(|run| run.positions).collect() };
    assert_eq!(runs(0..600), [0..256, 0..256, 0..88]);
    assert_eq!(runs(10..20), [Range { start: 10, end: 20 }]);
    assert_eq!(runs(255..257), [255..256, 0..1]);
    assert_eq!(runs(256..512), [Range { start: 0, end: 256 }]);
    assert_eq!(runs(300..300), []);
    assert!(sequence.runs(0, 0..600).all(|run| run.bytes.len() == 8 * 256));
    assert!(sequence.runs(1, 0..600).all(|run| run.bytes.is_empty()));
}

#[test]
fn pages_start_on_a_cache_line_and_as_zeros() {
    let pool = PagePool::new(&[100, 64], 3).unwrap();
    let mut sequence = pool.sequence();
    sequence.prepare(3 * 256, None).unwrap();
    sequence.commit(3 * 256);
    for (layer, bytes) in [(0, 100), (1, 64)] {
        for run in sequence.runs(layer, 0..3 * 256) {
            assert_eq!(run.bytes, vec![0; bytes]);
            assert!(run.bytes.as_ptr().addr().is_multiple_of(64));
        }
    }
    assert_eq!(
        (pool.usage().page_bytes, pool.usage().layer_page_bytes),
        (164, vec![100, 64])
    );
}

#[test]
fn a_pool_that_the_system_has_no_room_for_is_an_error() {
    for (layers, pages) in [
        (vec![1 << 40], 1 << 20),
        (vec![usize::MAX, 2], 2),
        (vec![64], usize::MAX),
    ] {
        let error = PagePool::new(&layers, pages).unwrap_err();
        assert!(
            matches!(error, PoolError::NoMemory { pages: asked, .. } if asked == pages),
            "{error}"
        );
    }
}

#[test]
fn an_empty_pool_works_and_has_nothing() {
    let pool = PagePool::new(&[], 0).unwrap();
    assert_eq!(pool.reserve(0).unwrap().pages(), 0);
    assert!(pool.sequence().prepare(1, None).is_err());
    assert_eq!((pool.trim(), pool.verify()), (0, Ok(())));
}

#[test]
fn pages_outlive_the_handle_that_made_them() {
    let mut sequence = pool(1).sequence();
    extend(&mut sequence, 256, 5);
    assert_eq!(read(&sequence), [5; 256]);
    assert_eq!(sequence.pool().usage().used, 1);
}

#[test]
#[should_panic(expected = "commit to 257, 0 are committed and 256 prepared")]
fn committing_what_was_not_prepared_is_a_mistake() {
    let mut sequence = pool(2).sequence();
    sequence.prepare(256, None).unwrap();
    sequence.commit(257);
}

#[test]
#[should_panic(expected = "a fork of 1 positions, 0 are committed")]
fn forking_what_is_not_committed_is_a_mistake() {
    let mut sequence = pool(2).sequence();
    sequence.prepare(256, None).unwrap();
    sequence.fork(1);
}

#[test]
#[should_panic(expected = "a reservation of another pool")]
fn a_reservation_serves_its_own_pool_only() {
    let mut foreign = pool(1).reserve(1).unwrap();
    let _ = pool(1).sequence().prepare(1, Some(&mut foreign));
}

#[test]
#[cfg(target_os = "linux")]
fn trim_gives_back_free_pages_once_and_spares_used_ones() {
    let page = 1 << 20;
    let pool = PagePool::new(&[page, page], 8).unwrap();
    let fill = |sequence: &mut Sequence, end| {
        sequence.prepare(end, None).unwrap();
        sequence.commit(end);
        for layer in 0..2 {
            for index in 0..sequence.pages().len() {
                // SAFETY: the page is this sequence's alone; no test reads it meanwhile.
                unsafe { sequence.page_ptr(layer, index).cast::<u8>().write_bytes(9, page) };
            }
        }
    };
    let (mut a, mut b, mut c) = (pool.sequence(), pool.sequence(), pool.sequence());
    fill(&mut a, 2 * 256);
    fill(&mut b, 256);
    fill(&mut c, 3 * 256);
    assert_eq!(pool.resident_bytes(), 6 * 2 * page);
    assert_eq!(pool.trim(), 0, "nothing is free that was used before");

    drop((a, c)); // pages 0, 1 and 3, 4, 5: system pages they share with page 2 stay
    let given = pool.trim();
    assert!(
        given > 2 * (5 * page - (64 << 10)) && given < 2 * 6 * page,
        "{given}"
    );
    assert_eq!((pool.trim(), pool.resident_bytes()), (0, 2 * page));
    for layer in 0..2 {
        assert!(
            b.runs(layer, 0..256)
                .all(|run| run.bytes.iter().all(|&byte| byte == 9))
        );
    }
    drop(b); // now the system pages it shared go too
    assert!(pool.trim() >= 2 * page);
    assert_eq!(pool.resident_bytes(), 0);

    let mut d = pool.sequence();
    d.prepare(8 * 256, None).unwrap();
    d.commit(8 * 256);
    for layer in 0..2 {
        let kept: usize = d
            .runs(layer, 0..8 * 256)
            .map(|run| run.bytes.iter().filter(|&&b| b != 0).count())
            .sum();
        assert!(kept < 64 << 10, "only the ends may keep bytes, {kept} did");
    }
    pool.verify().unwrap();
}

#[test]
fn a_step_that_needs_no_page_does_not_wait_for_the_lock() {
    let pool = pool(4);
    let mut sequence = pool.sequence();
    extend(&mut sequence, 10, 1);
    sequence.prepare(256, None).unwrap();
    let (done, finished) = mpsc::channel();
    let entries = pool.0.ledger.lock();
    let step = std::thread::spawn(move || {
        for end in 11..=256 {
            sequence.prepare(end, None).unwrap();
            sequence.commit(end);
            sequence.truncate(end);
        }
        done.send(()).unwrap();
        sequence // dropped (which locks) by the test
    });
    let waited = finished.recv_timeout(Duration::from_secs(10));
    drop(entries);
    assert!(waited.is_ok());
    assert_eq!(step.join().unwrap().len(), 256);
}

#[test]
fn sequences_may_live_and_die_on_many_threads() {
    let pool = pool(64);
    let mut base = pool.sequence();
    extend(&mut base, 300, 1);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (pool, mut mine) = (&pool, base.fork(300));
            scope.spawn(move || {
                for round in 0..100 {
                    let mark = 2 + thread * 1_000 + round;
                    let mut reservation = pool.reserve(2).unwrap();
                    mine.prepare(600, Some(&mut reservation)).unwrap();
                    for position in 300..600 {
                        write(&mut mine, position, mark);
                    }
                    mine.commit(600);
                    let other = mine.fork(450);
                    std::thread::scope(|inner| {
                        inner.spawn(move || assert_eq!(read(&other)[300..], [mark; 150]));
                        mine.truncate(300 + round as usize % 100);
                        mine.truncate(300);
                    });
                    assert_eq!(read(&mine), [1; 300]);
                    pool.verify().unwrap();
                }
            });
        }
    });
    drop(base);
    assert_eq!((pool.usage().used, pool.usage().promised), (0, 0));
    pool.verify().unwrap();
}

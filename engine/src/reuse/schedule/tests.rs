use super::TokenKind::{New, NonPrefix, Prefix};
use super::*;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn ratio(numerator: u32, denominator: u32) -> Ratio {
    Ratio::new(numerator, denominator).unwrap()
}

fn graphs(prefill: usize, recompute: u32, ratio: Ratio) -> Graphs {
    Graphs {
        prefill_tokens: NonZeroUsize::new(prefill).unwrap(),
        recompute: Some(RecomputeGraph::new(recompute, ratio)),
    }
}

fn stretches(counts: &[(TokenKind, usize)]) -> Vec<TokenKind> {
    counts
        .iter()
        .flat_map(|&(kind, count)| std::iter::repeat_n(kind, count))
        .collect()
}

/// Calls as DESIGN writes them: tokens counted from 1, both ends named.
fn written(schedule: &Schedule) -> String {
    let calls = schedule.calls.iter().map(|call| {
        let letter = match call.kind {
            CallKind::Prefill => 'P',
            CallKind::Recompute => 'S',
        };
        format!("{letter}[{}-{}]", call.tokens.start + 1, call.tokens.end)
    });
    calls.collect::<Vec<_>>().join(" ")
}

fn worked_example() -> (Vec<TokenKind>, Graphs) {
    let kinds = stretches(&[
        (Prefix, 5),
        (NonPrefix, 6),
        (New, 4),
        (NonPrefix, 2),
        (New, 3),
        (NonPrefix, 2),
    ]);
    (kinds, graphs(2, 4, ratio(1, 2)))
}

#[test]
fn the_worked_example_takes_six_calls_two_of_them_prefill() {
    let (kinds, graphs) = worked_example();
    let expected = "S[6-9] S[10-12] P[13-14] S[15-17] P[18-19] S[20-22]";
    let fixed = plan_fixed(&kinds, &graphs, 1.0, 1.0);
    assert_eq!(written(&fixed), expected);
    assert_eq!(fixed.latency, 6.0);
    let scanned = plan(&kinds, &graphs, |_| 1.0);
    assert_eq!(scanned, fixed);
}

#[test]
fn a_graph_for_each_kind_by_itself_takes_eight_calls_in_the_worked_example() {
    let (kinds, graphs) = worked_example();
    let mut calls = 0;
    let mut prefills = 0;
    for stretch in kinds.chunk_by(|a, b| a == b) {
        let longest = |fits: &dyn Fn(usize) -> bool| (1..=stretch.len()).take_while(|&l| fits(l)).count();
        let (most, prefill) = match stretch[0] {
            Prefix => continue,
            NonPrefix => {
                let graph = graphs.recompute.unwrap();
                (longest(&|l| graph.rows_for(l, 0).is_some()), false)
            }
            New => (graphs.prefill_tokens.get(), true),
        };
        calls += stretch.len().div_ceil(most);
        prefills += if prefill { stretch.len().div_ceil(most) } else { 0 };
    }
    assert_eq!((calls, prefills), (8, 4));
}

/// The least latency of any list of calls, found by trying all of them.
fn exhaustive(kinds: &[TokenKind], graphs: &Graphs, from: usize, latency: &dyn Fn(&Call) -> f64) -> f64 {
    if from == kinds.len() {
        return 0.0;
    }
    if kinds[from] == Prefix {
        return exhaustive(kinds, graphs, from + 1, latency);
    }
    let mut least = f64::INFINITY;
    let (mut reused, mut new) = (0, 0);
    for end in from + 1..=kinds.len() {
        match kinds[end - 1] {
            Prefix => break,
            NonPrefix => reused += 1,
            New => new += 1,
        }
        let mut rows = Vec::new();
        if reused + new <= graphs.prefill_tokens.get() {
            rows.push((CallKind::Prefill, reused + new));
        }
        // The conditions as they are written, in fractions of r's denominator.
        if let Some(graph) = graphs.recompute {
            let (a, b) = (
                graph.ratio.numerator as usize,
                graph.ratio.denominator.get() as usize,
            );
            let kept = a * graph.tokens as usize / b;
            if reused + new <= graph.tokens as usize && b * new + a * reused <= b * kept {
                rows.push((CallKind::Recompute, new + (a * reused).div_ceil(b)));
            }
        }
        for (kind, rows) in rows {
            let call = Call {
                kind,
                tokens: from..end,
                reused,
                new,
                rows,
            };
            least = least.min(latency(&call) + exhaustive(kinds, graphs, end, latency));
        }
    }
    least
}

/// A whole number that depends on all there is to a call and on the seed, in no order.
fn arbitrary_latency(seed: u64, call: &Call) -> f64 {
    let parts = [
        call.kind as usize,
        call.tokens.start,
        call.reused,
        call.new,
        call.rows,
    ];
    let mixed = parts.iter().fold(seed, |state, &part| {
        (state ^ part as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
    });
    (mixed % 40) as f64
}

fn check(kinds: &[TokenKind], graphs: &Graphs, schedule: &Schedule, latency: &dyn Fn(&Call) -> f64) {
    let mut covered = vec![0; kinds.len()];
    let mut total = 0.0;
    for call in &schedule.calls {
        let count = |kind| kinds[call.tokens.clone()].iter().filter(|k| **k == kind).count();
        assert_eq!(count(Prefix), 0, "a call holds a prefix token");
        assert_eq!((count(NonPrefix), count(New)), (call.reused, call.new));
        let len = call.reused + call.new;
        match call.kind {
            CallKind::Prefill => assert!(len <= graphs.prefill_tokens.get() && call.rows == len),
            CallKind::Recompute => {
                let graph = graphs.recompute.unwrap();
                let (a, b) = (
                    u64::from(graph.ratio.numerator),
                    u64::from(graph.ratio.denominator.get()),
                );
                let weight = b * call.new as u64 + a * call.reused as u64;
                assert!(len <= graph.tokens as usize && weight <= b * u64::from(graph.kept_rows()));
                assert!(call.rows <= graph.kept_rows() as usize && call.rows >= call.new);
            }
        }
        covered[call.tokens.clone()].iter_mut().for_each(|n| *n += 1);
        total += latency(call);
    }
    assert!(schedule.calls.is_sorted_by_key(|call| call.tokens.start));
    for (kind, times) in kinds.iter().zip(covered) {
        assert_eq!(times, usize::from(*kind != Prefix), "computed {times} times");
    }
    assert!(total == schedule.latency, "{total} {}", schedule.latency);
}

#[test]
fn no_list_of_calls_is_faster_in_twenty_thousand_small_cases() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let mut below = |end: u32| random.next_u32() % end;
    for case in 0..20_000 {
        let kinds: Vec<TokenKind> = {
            let len = below(9);
            // Mostly with the prefix in front, where a prefix belongs; also anywhere.
            let prefix = if below(4) == 0 { 5 } else { 0 };
            let front = below(3).min(len);
            let mut kind = |i| match below(10 + prefix) {
                _ if i < front => Prefix,
                0..5 => NonPrefix,
                5..10 => New,
                _ => Prefix,
            };
            (0..len).map(&mut kind).collect()
        };
        let denominator = 1 + below(6);
        let share = ratio(below(denominator + 1), denominator);
        let graphs = Graphs {
            prefill_tokens: NonZeroUsize::new(1 + below(4) as usize).unwrap(),
            recompute: (below(20) > 0).then(|| RecomputeGraph::new(below(8), share)),
        };
        let (prefill, recompute) = (f64::from(1 + below(9)), f64::from(1 + below(9)));
        let fixed = |call: &Call| match call.kind {
            CallKind::Prefill => prefill,
            CallKind::Recompute => recompute,
        };
        let least = exhaustive(&kinds, &graphs, 0, &fixed);
        let fast = plan_fixed(&kinds, &graphs, prefill, recompute);
        let scanned = plan(&kinds, &graphs, fixed);
        assert_eq!(fast.latency, least, "case {case}: {kinds:?} {graphs:?}");
        assert_eq!(scanned.latency, least, "case {case}: {kinds:?} {graphs:?}");
        check(&kinds, &graphs, &fast, &fixed);
        check(&kinds, &graphs, &scanned, &fixed);

        let general = |call: &Call| arbitrary_latency(case, call);
        let least = exhaustive(&kinds, &graphs, 0, &general);
        let scanned = plan(&kinds, &graphs, general);
        assert_eq!(scanned.latency, least, "case {case}: {kinds:?} {graphs:?}");
        check(&kinds, &graphs, &scanned, &general);
    }
}

#[test]
fn nothing_to_compute_takes_no_call() {
    let graphs = graphs(128, 512, ratio(1, 4));
    for kinds in [vec![], vec![Prefix; 3_000]] {
        for schedule in [
            plan_fixed(&kinds, &graphs, 3.0, 4.0),
            plan(&kinds, &graphs, |_| 3.0),
        ] {
            assert!(schedule.calls.is_empty());
            assert_eq!(schedule.latency, 0.0);
        }
    }
}

#[test]
fn all_new_is_prefilled_in_full_calls_when_recompute_keeps_no_more() {
    let graphs = graphs(128, 512, ratio(1, 4));
    let kinds = vec![New; 1_000];
    let schedule = plan_fixed(&kinds, &graphs, 3.0, 4.0);
    assert_eq!(schedule.latency, 8.0 * 3.0);
    assert!(schedule.calls.iter().all(|call| call.kind == CallKind::Prefill));
    assert!(schedule.calls[1..].iter().all(|call| call.tokens.len() == 128));
}

#[test]
fn a_ratio_of_one_makes_recompute_a_prefill_of_another_size() {
    let graphs = graphs(2, 4, ratio(1, 1));
    let kinds = stretches(&[(NonPrefix, 3), (New, 5)]);
    let schedule = plan_fixed(&kinds, &graphs, 1.0, 1.0);
    assert_eq!(written(&schedule), "S[1-4] S[5-8]");
    assert!(schedule.calls.iter().all(|call| call.rows == 4));
}

#[test]
fn a_ratio_of_nothing_takes_reused_tokens_as_they_are_and_no_new_one() {
    let graphs = graphs(2, 4, ratio(0, 1));
    let kinds = stretches(&[(NonPrefix, 5), (New, 1), (NonPrefix, 4)]);
    let schedule = plan_fixed(&kinds, &graphs, 1.0, 1.0);
    assert_eq!(schedule.latency, 3.0);
    for call in schedule.calls {
        assert_eq!(call.kind == CallKind::Prefill, call.new > 0);
        assert_eq!(call.rows, if call.new > 0 { call.tokens.len() } else { 0 });
    }
}

#[test]
fn where_recompute_keeps_no_row_it_takes_no_token_that_needs_one() {
    // K = floor(4 / 5) = 0.
    let graphs = graphs(3, 4, ratio(1, 5));
    assert_eq!(graphs.recompute.unwrap().kept_rows(), 0);
    let kinds = stretches(&[(NonPrefix, 4), (New, 4)]);
    for schedule in [
        plan_fixed(&kinds, &graphs, 9.0, 1.0),
        plan(&kinds, &graphs, |call| call.rows as f64),
    ] {
        assert!(schedule.calls.iter().all(|call| call.kind == CallKind::Prefill));
        check(
            &kinds,
            &graphs,
            &Schedule {
                latency: 8.0,
                ..schedule
            },
            &|call| call.rows as f64,
        );
    }
}

#[test]
fn a_backend_without_recompute_prefills_everything() {
    let graphs = Graphs {
        recompute: None,
        ..graphs(4, 8, ratio(1, 2))
    };
    let kinds = stretches(&[(Prefix, 2), (NonPrefix, 5), (New, 3)]);
    let schedule = plan_fixed(&kinds, &graphs, 1.0, 0.0);
    assert_eq!(written(&schedule), "P[3-6] P[7-10]");
}

#[test]
fn shares_are_counted_exactly() {
    // In floating point 0.29 * 100 is 28.999...
    let kept = |r: f64, tokens| RecomputeGraph::new(tokens, Ratio::nearest(r).unwrap()).kept_rows();
    assert_eq!((kept(0.29, 100), kept(0.15, 20), kept(0.25, 512)), (29, 3, 128));
    let graph = RecomputeGraph::new(512, Ratio::nearest(0.25).unwrap());
    assert_eq!(graph.rows_for(512, 0), Some(128));
    assert_eq!(graph.rows_for(511, 1), None);
    assert_eq!(graph.rows_for(508, 1), Some(128));
    assert_eq!(graph.rows_for(usize::MAX, 1), None);
    assert_eq!(Ratio::nearest(f64::NAN), None);
    assert_eq!((Ratio::new(2, 1), Ratio::new(0, 0)), (None, None));
}

#[test]
fn latencies_that_are_no_latencies_are_as_bad_as_can_be() {
    let graphs = graphs(4, 8, ratio(1, 2));
    let kinds = stretches(&[(NonPrefix, 8), (New, 2)]);
    for odd in [f64::NAN, f64::INFINITY, -1.0] {
        let all = plan(&kinds, &graphs, |_| odd);
        assert_eq!(all.latency, f64::INFINITY);
        check(&kinds, &graphs, &all, &|_| f64::INFINITY);
        let fixed = plan_fixed(&kinds, &graphs, 1.0, odd);
        assert!(fixed.calls.iter().all(|call| call.kind == CallKind::Prefill));
    }
}

fn token_kind() -> impl Strategy<Value = TokenKind> {
    prop_oneof![1 => Just(Prefix), 6 => Just(NonPrefix), 4 => Just(New)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_token_outside_the_prefix_is_in_exactly_one_call_that_can_hold_it(
        runs in proptest::collection::vec((token_kind(), 1..90_usize), 0..12),
        prefill in 1..70_usize,
        recompute in 0..140_u32,
        share in (0..40_u32, 40..60_u32),
        times in (1..50_u32, 1..50_u32),
    ) {
        let kinds = stretches(&runs);
        let graphs = graphs(prefill, recompute, ratio(share.0, share.1));
        let (prefill, recompute) = (f64::from(times.0), f64::from(times.1));
        let fixed = |call: &Call| match call.kind {
            CallKind::Prefill => prefill,
            CallKind::Recompute => recompute,
        };
        let fast = plan_fixed(&kinds, &graphs, prefill, recompute);
        check(&kinds, &graphs, &fast, &fixed);
        let scanned = plan(&kinds, &graphs, fixed);
        check(&kinds, &graphs, &scanned, &fixed);
        prop_assert_eq!(fast, scanned);
        let general = |call: &Call| arbitrary_latency(7, call);
        check(&kinds, &graphs, &plan(&kinds, &graphs, general), &general);
    }
}

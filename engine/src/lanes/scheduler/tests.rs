//! Each test states one rule. The properties over whole runs are in [`super::simulation`].

use super::*;

const A: RequestId = RequestId(1);
const B: RequestId = RequestId(2);
const C: RequestId = RequestId(3);

fn demand(prompt_tokens: usize, output_tokens: usize) -> Demand {
    Demand {
        prompt_tokens,
        shared_tokens: 0,
        output_tokens,
    }
}

fn with_lanes(lanes: usize) -> Scheduler {
    let policy = Policy {
        lanes,
        ..Policy::default()
    };
    Scheduler::new(policy, 1_000)
}

fn enqueue(scheduler: &mut Scheduler, id: RequestId, prompt_tokens: usize) {
    scheduler.enqueue(id, demand(prompt_tokens, 100)).unwrap();
}

/// Admits what comes first, from a pool that has room for everything.
fn admit(scheduler: &mut Scheduler) -> Option<RequestId> {
    scheduler.admit(|_, demand, _| Some(demand.shared_tokens))
}

fn admit_all(scheduler: &mut Scheduler) -> Vec<RequestId> {
    std::iter::from_fn(|| admit(scheduler)).collect()
}

/// A lane that decodes.
fn decoding(scheduler: &mut Scheduler, id: RequestId, prompt_tokens: usize, output_tokens: usize) {
    scheduler
        .enqueue(id, demand(prompt_tokens, output_tokens))
        .unwrap();
    assert_eq!(admit(scheduler), Some(id));
    assert!(scheduler.prefilled(id, prompt_tokens));
}

fn overtaken(scheduler: &Scheduler, id: RequestId) -> usize {
    match scheduler.phase(id) {
        Some(Phase::Queued { overtaken, .. }) => overtaken,
        other => panic!("{id:?} is not queued but {other:?}"),
    }
}

#[test]
fn nothing_to_do_is_idle() {
    let mut scheduler = with_lanes(4);
    assert_eq!(admit(&mut scheduler), None);
    assert_eq!(scheduler.next_turn(), Turn::Idle);
}

#[test]
fn a_request_larger_than_the_pool_is_refused_with_the_numbers() {
    let mut scheduler = Scheduler::new(Policy::default(), 40);
    let refusal = scheduler.enqueue(A, demand(2_049, 10_000)).unwrap_err();
    assert_eq!(
        refusal,
        Refusal {
            prompt_tokens: 2_049,
            output_tokens: 8_192,
            needed_pages: 41,
            total_pages: 40
        }
    );
    assert_eq!(
        refusal.to_string(),
        "a prompt of 2049 tokens with 8192 tokens of answer takes 41 pages of memory, and there are 40: shorten the prompt \
         or raise the memory limit"
    );
    assert_eq!((scheduler.phase(A), scheduler.next_turn()), (None, Turn::Idle));
    // One token less fits.
    scheduler.enqueue(A, demand(2_048, 10_000)).unwrap();
}

#[test]
fn sharing_does_not_make_a_request_fit_that_is_larger_than_the_pool() {
    let mut scheduler = Scheduler::new(Policy::default(), 4);
    let shared = Demand {
        prompt_tokens: 1_024,
        shared_tokens: 1_000,
        output_tokens: 1,
    };
    assert_eq!(scheduler.policy().pages(&shared), 2);
    assert_eq!(scheduler.enqueue(A, shared).unwrap_err().needed_pages, 5);
}

#[test]
fn the_shortest_prompt_is_admitted_first_and_equals_in_order_of_arrival() {
    let mut scheduler = with_lanes(4);
    for (id, tokens) in [(1, 500), (2, 90), (3, 500), (4, 300)] {
        enqueue(&mut scheduler, RequestId(id), tokens);
    }
    assert_eq!(admit_all(&mut scheduler), [2, 4, 1, 3].map(RequestId));
}

#[test]
fn what_is_shared_makes_a_prompt_shorter() {
    let mut scheduler = with_lanes(4);
    enqueue(&mut scheduler, A, 300);
    let long_but_known = Demand {
        prompt_tokens: 5_000,
        shared_tokens: 4_900,
        output_tokens: 100,
    };
    scheduler.enqueue(B, long_but_known).unwrap();
    assert_eq!(admit_all(&mut scheduler), [B, A]);
}

#[test]
fn the_pool_is_offered_the_reservation_and_says_what_is_shared_now() {
    let mut scheduler = with_lanes(4);
    let expected = Demand {
        prompt_tokens: 1_000,
        shared_tokens: 600,
        output_tokens: 100,
    };
    scheduler.enqueue(A, expected).unwrap();
    let mut offered = Vec::new();
    scheduler.admit(|id, demand, pages| {
        offered.push((id, *demand, pages));
        Some(256)
    });
    assert_eq!(offered, [(A, expected, 3)]);
    let (done, total) = (256, 1_000);
    assert_eq!(scheduler.phase(A), Some(Phase::Prefill { done, total }));
    assert!(!scheduler.prefilled(A, 743));
    assert!(scheduler.prefilled(A, 1));
}

#[test]
fn a_prompt_that_is_shared_to_its_end_still_computes_its_last_token() {
    let mut scheduler = with_lanes(4);
    enqueue(&mut scheduler, A, 512);
    scheduler.admit(|_, _, _| Some(512));
    let (done, total) = (511, 512);
    assert_eq!(scheduler.phase(A), Some(Phase::Prefill { done, total }));
}

#[test]
fn a_request_that_does_not_fit_is_overtaken_eight_times_and_then_nobody_later_is_admitted() {
    let mut scheduler = with_lanes(20);
    enqueue(&mut scheduler, A, 5_000);
    for id in 10..20 {
        enqueue(&mut scheduler, RequestId(id), 10);
    }
    let only_short = |_: RequestId, demand: &Demand, _: usize| (demand.prompt_tokens < 5_000).then_some(0);
    for id in 10..18 {
        assert_eq!(overtaken(&scheduler, A), id - 10);
        assert_eq!(scheduler.admit(only_short), Some(RequestId(id as u64)));
    }
    assert_eq!(overtaken(&scheduler, A), 8);

    let mut offered = Vec::new();
    let admitted = scheduler.admit(|id, _, _| {
        offered.push(id);
        None
    });
    assert_eq!((admitted, offered), (None, vec![A]), "only the one that waited");

    assert_eq!(admit_all(&mut scheduler), [1, 18, 19].map(RequestId));
}

#[test]
fn a_long_prompt_that_would_fit_is_overtaken_by_shorter_ones_eight_times() {
    let mut scheduler = with_lanes(1);
    enqueue(&mut scheduler, A, 5_000);
    for id in 10..30 {
        // Short prompts come one by one, each as soon as the lane is free.
        enqueue(&mut scheduler, RequestId(id), 10);
        let admitted = admit(&mut scheduler).unwrap();
        if admitted == A {
            assert_eq!(id, 18, "eight went before");
            return;
        }
        scheduler.remove(admitted);
    }
    panic!("never admitted");
}

#[test]
fn those_that_were_overtaken_eight_times_go_in_order_of_arrival() {
    let mut scheduler = with_lanes(20);
    enqueue(&mut scheduler, A, 9_000);
    enqueue(&mut scheduler, B, 5_000);
    for id in 10..18 {
        enqueue(&mut scheduler, RequestId(id), 10);
        admit(&mut scheduler);
    }
    assert_eq!((overtaken(&scheduler, A), overtaken(&scheduler, B)), (8, 8));
    enqueue(&mut scheduler, C, 10);
    assert_eq!(admit_all(&mut scheduler), [A, B, C]);
}

#[test]
fn without_overtaking_requests_are_served_in_order_of_arrival() {
    let policy = Policy {
        overtakes: 0,
        ..Policy::default()
    };
    let mut scheduler = Scheduler::new(policy, 1_000);
    enqueue(&mut scheduler, A, 500);
    enqueue(&mut scheduler, B, 10);
    assert_eq!(scheduler.admit(|id, _, _| (id == B).then_some(0)), None);
    assert_eq!(admit_all(&mut scheduler), [A, B]);
    assert_eq!(scheduler.next_turn(), prefill(A, None));
}

#[test]
fn the_queue_tells_how_many_are_ahead() {
    let mut scheduler = with_lanes(1);
    enqueue(&mut scheduler, A, 500);
    enqueue(&mut scheduler, B, 10);
    enqueue(&mut scheduler, C, 90);
    let ahead = |scheduler: &Scheduler| {
        [A, B, C].map(|id| match scheduler.phase(id) {
            Some(Phase::Queued { ahead, .. }) => Some(ahead),
            _ => None,
        })
    };
    assert_eq!(ahead(&scheduler), [Some(2), Some(0), Some(1)]);
    admit(&mut scheduler);
    assert_eq!(ahead(&scheduler), [Some(1), None, Some(0)]);
}

#[test]
fn those_behind_a_closed_queue_count_it_as_ahead() {
    let policy = Policy {
        overtakes: 1,
        ..Policy::default()
    };
    let mut scheduler = Scheduler::new(policy, 1_000);
    enqueue(&mut scheduler, A, 500);
    enqueue(&mut scheduler, B, 10);
    assert_eq!(admit(&mut scheduler), Some(B));
    enqueue(&mut scheduler, C, 10);
    let (ahead, overtaken) = (1, 0);
    assert_eq!(scheduler.phase(C), Some(Phase::Queued { ahead, overtaken }));
}

#[test]
fn no_more_requests_are_active_than_there_are_lanes() {
    let mut scheduler = Scheduler::new(Policy::default(), 1_000);
    for id in 0..6 {
        enqueue(&mut scheduler, RequestId(id), 10);
    }
    assert_eq!(admit_all(&mut scheduler).len(), 4);
    assert_eq!((scheduler.lane_count(), scheduler.queued_count()), (4, 2));
    scheduler.admit(|_, _, _| unreachable!("nothing is offered while all lanes are taken"));
    assert!(scheduler.remove(RequestId(2)));
    assert_eq!(admit_all(&mut scheduler), [RequestId(4)]);
}

#[test]
fn a_policy_of_zeros_still_serves() {
    let zeros = Policy {
        lanes: 0,
        decode_steps: 0,
        mixed_prefill_tokens: 0,
        guaranteed_output: 0,
        overtakes: 0,
        page_tokens: 0,
    };
    let mut scheduler = Scheduler::new(zeros, 1_000);
    decoding(&mut scheduler, A, 10, 10);
    let (steps, may_speculate) = (1, true);
    assert_eq!(scheduler.next_turn(), Turn::Decode { steps, may_speculate });
}

fn prefill(id: RequestId, most_tokens: Option<usize>) -> Turn {
    Turn::Prefill { id, most_tokens }
}

#[test]
fn with_no_lane_decoding_prefill_runs_in_full_graphs() {
    let mut scheduler = with_lanes(4);
    enqueue(&mut scheduler, A, 700);
    admit(&mut scheduler);
    for _ in 0..2 {
        assert_eq!(scheduler.next_turn(), prefill(A, None));
        assert!(!scheduler.prefilled(A, 256));
    }
    assert!(scheduler.prefilled(A, 188));
    assert_eq!(scheduler.phase(A), Some(Phase::Decode { generated: 0 }));
}

#[test]
fn four_decode_steps_alternate_with_sixty_four_prompt_tokens() {
    let mut scheduler = with_lanes(4);
    decoding(&mut scheduler, A, 10, 100);
    enqueue(&mut scheduler, B, 150);
    admit(&mut scheduler);
    let may_speculate = false;
    for read in [64, 64, 22] {
        for steps in [4, 3, 2, 1] {
            assert_eq!(scheduler.next_turn(), Turn::Decode { steps, may_speculate });
            scheduler.decoded();
        }
        assert_eq!(scheduler.next_turn(), prefill(B, Some(64)));
        scheduler.prefilled(B, read);
    }
    assert_eq!(scheduler.decoding().collect::<Vec<_>>(), [A, B]);
    assert_eq!(scheduler.phase(A), Some(Phase::Decode { generated: 12 }));
}

#[test]
fn a_request_that_comes_while_one_decodes_needs_not_wait_for_four_more_steps() {
    let mut scheduler = with_lanes(4);
    decoding(&mut scheduler, A, 10, 100);
    for _ in 0..50 {
        scheduler.decoded();
    }
    enqueue(&mut scheduler, B, 150);
    admit(&mut scheduler);
    assert_eq!(scheduler.next_turn(), prefill(B, Some(64)));
}

#[test]
fn the_shortest_admitted_prompt_is_read_first_and_to_its_end() {
    let mut scheduler = with_lanes(4);
    for (id, tokens) in [(A, 900), (B, 600)] {
        enqueue(&mut scheduler, id, tokens);
        admit(&mut scheduler);
    }
    assert_eq!(scheduler.next_turn(), prefill(B, None));
    scheduler.prefilled(B, 256);
    // Shorter than what is left of B, but B was begun.
    enqueue(&mut scheduler, C, 10);
    admit(&mut scheduler);
    assert_eq!(scheduler.next_turn(), prefill(B, None));
    scheduler.prefilled(B, 344);
    for _ in 0..4 {
        scheduler.decoded();
    }
    assert_eq!(scheduler.next_turn(), prefill(C, Some(64)));
}

#[test]
fn an_admitted_long_prompt_is_overtaken_by_later_ones_eight_times_in_all() {
    let mut scheduler = with_lanes(2);
    enqueue(&mut scheduler, A, 5_000);
    for id in 10..13 {
        enqueue(&mut scheduler, RequestId(id), 10);
        assert_eq!(admit(&mut scheduler), Some(RequestId(id)));
        scheduler.remove(RequestId(id));
    }
    assert_eq!(overtaken(&scheduler, A), 3);
    assert_eq!(admit(&mut scheduler), Some(A));
    for id in 20..25 {
        enqueue(&mut scheduler, RequestId(id), 10);
        admit(&mut scheduler);
        assert_eq!(scheduler.next_turn(), prefill(RequestId(id), None));
        scheduler.remove(RequestId(id));
    }
    enqueue(&mut scheduler, B, 10);
    admit(&mut scheduler);
    assert_eq!(scheduler.next_turn(), prefill(A, None));
}

#[test]
fn a_lane_is_not_overtaken_by_one_that_arrived_before_it() {
    let policy = Policy {
        overtakes: 1,
        ..Policy::default()
    };
    let mut scheduler = Scheduler::new(policy, 1_000);
    enqueue(&mut scheduler, A, 5_000);
    enqueue(&mut scheduler, B, 500);
    assert_eq!(admit(&mut scheduler), Some(B));
    // By now nearly all of A is in memory, so that it is read before B: it came first, and B may still be overtaken.
    assert_eq!(scheduler.admit(|_, _, _| Some(4_990)), Some(A));
    assert_eq!(scheduler.next_turn(), prefill(A, None));
    scheduler.remove(A);
    for later in [C, RequestId(4)] {
        enqueue(&mut scheduler, later, 10);
        admit(&mut scheduler);
    }
    assert_eq!(scheduler.next_turn(), prefill(C, None));
    scheduler.remove(C);
    assert_eq!(scheduler.next_turn(), prefill(B, None));
}

#[test]
fn waiting_requests_that_get_no_pages_while_nothing_runs_are_blocked() {
    let mut scheduler = with_lanes(4);
    enqueue(&mut scheduler, A, 500);
    enqueue(&mut scheduler, B, 10);
    assert_eq!(scheduler.admit(|_, _, _| None), None);
    assert_eq!(scheduler.next_turn(), Turn::Blocked { first: A });
    assert_eq!((overtaken(&scheduler, A), overtaken(&scheduler, B)), (0, 0));
    scheduler.remove(A);
    assert_eq!(scheduler.next_turn(), Turn::Blocked { first: B });
}

#[test]
fn a_lane_that_is_alone_may_speculate_until_another_request_comes_and_again_after() {
    let mut scheduler = with_lanes(4);
    let may_speculate = |scheduler: &mut Scheduler| match scheduler.next_turn() {
        Turn::Decode { may_speculate, .. } => may_speculate,
        other => panic!("{other:?} is not a decode turn"),
    };
    decoding(&mut scheduler, A, 10, 100);
    assert!(may_speculate(&mut scheduler));
    scheduler.speculated(A, 5);
    assert_eq!(scheduler.phase(A), Some(Phase::Decode { generated: 5 }));

    enqueue(&mut scheduler, B, 10);
    assert!(!may_speculate(&mut scheduler), "one waits");
    admit(&mut scheduler);
    assert!(!may_speculate(&mut scheduler), "one is read");
    scheduler.prefilled(B, 10);
    assert!(!may_speculate(&mut scheduler), "two decode");
    scheduler.remove(A);
    assert!(may_speculate(&mut scheduler));
}

#[test]
fn a_speculative_round_is_one_step_however_many_tokens_it_gives() {
    let mut scheduler = with_lanes(4);
    decoding(&mut scheduler, A, 10, 100);
    scheduler.speculated(A, 9);
    enqueue(&mut scheduler, B, 10);
    admit(&mut scheduler);
    let (steps, may_speculate) = (3, false);
    assert_eq!(scheduler.next_turn(), Turn::Decode { steps, may_speculate });
}

#[test]
fn a_request_that_leaves_the_queue_opens_it_for_the_others() {
    let policy = Policy {
        overtakes: 0,
        ..Policy::default()
    };
    let mut scheduler = Scheduler::new(policy, 1_000);
    enqueue(&mut scheduler, A, 500);
    enqueue(&mut scheduler, B, 10);
    assert_eq!(scheduler.admit(|id, _, _| (id == B).then_some(0)), None);
    assert!(scheduler.remove(A));
    assert_eq!(scheduler.admit(|id, _, _| (id == B).then_some(0)), Some(B));
    assert_eq!(scheduler.phase(A), None);
    assert!(!scheduler.remove(A), "it left before");
}

#[test]
fn a_request_that_leaves_while_it_is_read_makes_room_for_the_next() {
    let mut scheduler = with_lanes(4);
    for (id, tokens) in [(A, 300), (B, 500)] {
        enqueue(&mut scheduler, id, tokens);
        admit(&mut scheduler);
    }
    assert_eq!(scheduler.next_turn(), prefill(A, None));
    scheduler.prefilled(A, 256);
    assert!(scheduler.remove(A));
    assert_eq!(scheduler.next_turn(), prefill(B, None));
    assert!(!scheduler.prefilled(A, 44), "a late report changes nothing");
    assert_eq!((scheduler.phase(A), scheduler.lane_count()), (None, 1));
}

#[test]
fn a_lane_that_leaves_while_it_decodes_is_no_row_of_the_next_step() {
    let mut scheduler = with_lanes(4);
    decoding(&mut scheduler, A, 10, 100);
    decoding(&mut scheduler, B, 10, 100);
    enqueue(&mut scheduler, C, 500);
    admit(&mut scheduler);
    assert!(scheduler.remove(A));
    assert_eq!(scheduler.decoding().collect::<Vec<_>>(), [B]);
    // The last one that decoded is gone: nobody waits for a token, and the prompt is read at full speed.
    assert!(scheduler.remove(B));
    assert_eq!(scheduler.next_turn(), prefill(C, None));
}

#[test]
fn the_victim_is_the_lane_furthest_beyond_its_guarantee() {
    let policy = Policy {
        guaranteed_output: 10,
        ..Policy::default()
    };
    let mut scheduler = Scheduler::new(policy, 1_000);
    decoding(&mut scheduler, A, 10, 100);
    for _ in 0..5 {
        scheduler.decoded();
    }
    decoding(&mut scheduler, B, 10, 100);
    for _ in 0..5 {
        scheduler.decoded();
    }
    assert_eq!(scheduler.capacity_victim(), None, "A has what it was promised");
    scheduler.decoded();
    assert_eq!(scheduler.capacity_victim(), Some(A));
    for _ in 0..9 {
        scheduler.decoded();
    }
    assert_eq!(
        (scheduler.surplus_tokens(A), scheduler.surplus_tokens(B)),
        (10, 5)
    );
    assert_eq!(scheduler.capacity_victim(), Some(A));
    scheduler.remove(A);
    assert_eq!(scheduler.capacity_victim(), Some(B));
}

#[test]
fn of_equal_victims_the_one_admitted_last_goes() {
    let policy = Policy {
        guaranteed_output: 1,
        ..Policy::default()
    };
    let mut scheduler = Scheduler::new(policy, 1_000);
    decoding(&mut scheduler, A, 10, 100);
    decoding(&mut scheduler, B, 10, 100);
    scheduler.decoded();
    scheduler.decoded();
    assert_eq!(scheduler.capacity_victim(), Some(B));
}

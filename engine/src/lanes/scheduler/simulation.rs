//! Properties of whole runs: requests come and leave at random, a pool of numbers grants or refuses, and every decision is
//! checked against what the simulation saw itself.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

/// What happens to the scheduler between two turns of the simulation.
#[derive(Debug, Clone)]
enum Event {
    Arrive {
        prompt_tokens: usize,
        shared_tokens: usize,
        output_tokens: usize,
    },
    /// The request with this rank, modulo all that are there, leaves.
    Leave(usize),
    /// Turns run. A bit of `fits` for each offer: unset ones are refused although there are pages, unless nothing runs.
    Run { turns: usize, fits: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1usize..2_500, 0usize..1_500, 0usize..60).prop_map(|(prompt_tokens, shared_tokens, output_tokens)| {
            Event::Arrive { prompt_tokens, shared_tokens, output_tokens }
        }),
        1 => any::<usize>().prop_map(Event::Leave),
        4 => (1usize..12, any::<u64>()).prop_map(|(turns, fits)| Event::Run { turns, fits }),
    ]
}

const POOL_PAGES: usize = 10;
const GRAPH_TOKENS: usize = 256;

/// Carries out what the scheduler decides on a pool of numbers, and checks every decision against what it saw itself.
struct Simulation {
    scheduler: Scheduler,
    policy: Policy,
    demands: HashMap<RequestId, Demand>,
    /// Pages held by each lane.
    held: HashMap<RequestId, usize>,
    /// Waiting or active, in order of arrival.
    here: Vec<RequestId>,
    /// For each request that was accepted: the later ones that went before it.
    overtakers: HashMap<RequestId, HashSet<RequestId>>,
    admitted: Vec<RequestId>,
    /// Those whose prefill began.
    begun: HashSet<RequestId>,
    /// The prefill that was begun and is not complete.
    reading: Option<RequestId>,
    steps_since_prefill: usize,
    /// Decode steps run while a lane waited for its prefill.
    steps_while_pending: usize,
}

impl Simulation {
    fn new(policy: Policy) -> Simulation {
        Simulation {
            scheduler: Scheduler::new(policy, POOL_PAGES),
            policy,
            demands: HashMap::new(),
            held: HashMap::new(),
            here: Vec::new(),
            overtakers: HashMap::new(),
            admitted: Vec::new(),
            begun: HashSet::new(),
            reading: None,
            steps_since_prefill: 0,
            steps_while_pending: 0,
        }
    }

    fn apply(&mut self, event: &Event, number: usize) {
        match *event {
            Event::Arrive {
                prompt_tokens,
                shared_tokens,
                output_tokens,
            } => {
                let id = RequestId(number as u64);
                let demand = Demand {
                    prompt_tokens,
                    shared_tokens,
                    output_tokens,
                };
                let accepted = self.scheduler.enqueue(id, demand).is_ok();
                assert_eq!(accepted, self.policy.footprint_pages(&demand) <= POOL_PAGES);
                if accepted {
                    self.demands.insert(id, demand);
                    self.overtakers.insert(id, HashSet::new());
                    self.here.push(id);
                }
            }
            Event::Leave(rank) => {
                if let Some(&id) = self.here.get(rank % self.here.len().max(1)) {
                    self.leave(id);
                }
            }
            Event::Run { turns, mut fits } => {
                for _ in 0..turns {
                    self.turn(&mut fits);
                }
            }
        }
    }

    fn leave(&mut self, id: RequestId) {
        assert!(self.scheduler.remove(id));
        assert_eq!(self.scheduler.phase(id), None);
        self.here.retain(|&other| other != id);
        self.held.remove(&id);
        if self.reading == Some(id) {
            self.reading = None;
        }
    }

    /// `id` goes first: everyone who came earlier and of whom `still_waits` holds has been overtaken by it.
    fn goes_first(&mut self, id: RequestId, still_waits: impl Fn(&Simulation, RequestId) -> bool) {
        let earlier: Vec<_> = self
            .here
            .iter()
            .copied()
            .filter(|&other| other < id && still_waits(self, other))
            .collect();
        for other in earlier {
            let overtakers = self.overtakers.get_mut(&other).unwrap();
            overtakers.insert(id);
            assert!(overtakers.len() <= self.policy.overtakes, "{other:?} starves");
        }
    }

    fn admit(&mut self, fits: &mut u64) {
        loop {
            let (held, policy) = (&mut self.held, self.policy);
            let admitted = self.scheduler.admit(|id, demand, pages| {
                assert_eq!(pages, policy.pages(demand));
                *fits = fits.rotate_right(1);
                // A lane that is alone may find nothing shared any more.
                let shared_tokens = if held.is_empty() { 0 } else { demand.shared_tokens };
                let demand = Demand {
                    shared_tokens,
                    ..*demand
                };
                let pages = policy.pages(&demand);
                let free = POOL_PAGES - held.values().sum::<usize>();
                if pages > free || (*fits & 1 == 0 && !held.is_empty()) {
                    return None;
                }
                held.insert(id, pages);
                Some(shared_tokens)
            });
            let Some(id) = admitted else { break };
            assert!(self.here.contains(&id) && !self.admitted.contains(&id));
            self.admitted.push(id);
            self.goes_first(id, |this, other| !this.admitted.contains(&other));
        }
        assert!(self.scheduler.lane_count() <= self.policy.lanes);
        assert_eq!(self.scheduler.lane_count(), self.held.len());
        assert_eq!(self.scheduler.queued_count(), self.here.len() - self.held.len());
        for &id in &self.here {
            if let Some(Phase::Queued { overtaken, ahead }) = self.scheduler.phase(id) {
                assert_eq!(overtaken, self.overtakers[&id].len());
                assert!(ahead < self.scheduler.queued_count());
            }
        }
    }

    /// Returns whether there was anything to do.
    fn turn(&mut self, fits: &mut u64) -> bool {
        self.admit(fits);
        let turn = self.scheduler.next_turn();
        assert_eq!(turn, self.scheduler.next_turn(), "asking changes nothing");
        let decoding: Vec<_> = self.scheduler.decoding().collect();
        assert!(decoding.iter().all(|id| self.here.contains(id)));
        match turn {
            Turn::Idle => {
                assert!(self.here.is_empty());
                return false;
            }
            Turn::Blocked { .. } => panic!("an empty pool takes everything that was not refused"),
            Turn::Prefill { id, most_tokens } => {
                assert!(self.here.contains(&id));
                self.prefill(id, most_tokens, !decoding.is_empty());
            }
            Turn::Decode { steps, may_speculate } => {
                assert!(steps >= 1 && !decoding.is_empty());
                assert_eq!(may_speculate, self.here.len() == 1);
                self.decode(&decoding);
            }
        }
        true
    }

    fn prefill(&mut self, id: RequestId, most_tokens: Option<usize>, is_awaited: bool) {
        assert_eq!(
            most_tokens,
            is_awaited.then_some(self.policy.mixed_prefill_tokens)
        );
        if is_awaited {
            assert!(
                self.steps_since_prefill >= self.policy.decode_steps,
                "a lane waits twice"
            );
        }
        assert!(
            self.reading.is_none_or(|reading| reading == id),
            "a prompt was left half read"
        );
        if self.begun.insert(id) {
            self.goes_first(id, |this, other| {
                this.admitted.contains(&other) && !this.begun.contains(&other)
            });
        }
        self.steps_since_prefill = 0;
        self.steps_while_pending = 0;
        let is_complete = self.scheduler.prefilled(id, most_tokens.unwrap_or(GRAPH_TOKENS));
        self.reading = (!is_complete).then_some(id);
    }

    fn decode(&mut self, decoding: &[RequestId]) {
        if decoding.len() < self.held.len() {
            self.steps_while_pending += 1;
            assert!(
                self.steps_while_pending <= self.policy.decode_steps,
                "a prompt waits too long"
            );
        }
        self.steps_since_prefill += 1;
        self.scheduler.decoded();
        for &id in decoding {
            let Some(Phase::Decode { generated }) = self.scheduler.phase(id) else {
                panic!("{id:?} stopped decoding by itself");
            };
            if generated >= self.demands[&id].output_tokens {
                self.leave(id);
            }
        }
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    let numbers = (1usize..6, 1usize..6, 1usize..100, 0usize..40, 0usize..9);
    let any = numbers.prop_map(
        |(lanes, decode_steps, mixed_prefill_tokens, guaranteed_output, overtakes)| Policy {
            lanes,
            decode_steps,
            mixed_prefill_tokens,
            guaranteed_output,
            overtakes,
            page_tokens: 256,
        },
    );
    prop_oneof![Just(Policy::default()), any]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every decision of the run is checked where it is taken, in [`Simulation`]: the bound on overtaking, the cadence,
    /// reading to the end, the number of lanes, and that nobody is named who left.
    #[test]
    fn whatever_comes_and_goes_everyone_is_served(
        policy in policy(),
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut simulation = Simulation::new(policy);
        for (number, event) in events.iter().enumerate() {
            simulation.apply(event, number);
        }
        // No more arrivals: a pool that refuses whenever it may still lets everyone through in the end.
        let mut turns = 0;
        while simulation.turn(&mut 0) {
            turns += 1;
            prop_assert!(turns < 100_000, "{:?} are never served", simulation.here);
        }
    }

    #[test]
    fn short_prompts_without_end_do_not_keep_a_long_one_out(
        lanes in 1usize..5,
        short in prop::collection::vec(1usize..200, 12..40),
    ) {
        let policy = Policy { lanes, ..Policy::default() };
        let mut scheduler = Scheduler::new(policy, 1_000);
        let demand = |prompt_tokens| Demand { prompt_tokens, shared_tokens: 0, output_tokens: 100 };
        scheduler.enqueue(RequestId(0), demand(5_000)).unwrap();
        let mut before = 0;
        for (number, &tokens) in short.iter().enumerate() {
            scheduler.enqueue(RequestId(number as u64 + 1), demand(tokens)).unwrap();
            let admitted = scheduler.admit(|_, _, _| Some(0)).unwrap();
            if admitted == RequestId(0) {
                break;
            }
            before += 1;
            scheduler.remove(admitted);
        }
        prop_assert_eq!(before, Policy::default().overtakes);
    }
}

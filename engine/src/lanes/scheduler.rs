//! The scheduler of lanes: which queued request becomes a lane, and whether the next call prefills or decodes.
//!
//! It decides and never executes. Whoever owns the backend calls, before every turn, [`Scheduler::admit`] until it gives
//! nothing and then [`Scheduler::next_turn`], runs what that says, and reports with [`Scheduler::prefilled`],
//! [`Scheduler::decoded`] or [`Scheduler::speculated`]. It keeps three promises: no request is passed by more than
//! [`Policy::overtakes`] later ones on its way to its prefill; while any lane decodes, two prefill calls have
//! [`Policy::decode_steps`] decode steps between them; and a request that was removed is never named again.
//!
//! ```
//! use reprise_engine::lanes::policy::{Demand, Policy};
//! use reprise_engine::lanes::scheduler::{RequestId, Scheduler, Turn};
//!
//! let mut scheduler = Scheduler::new(Policy::default(), 64);
//! let demand = Demand { prompt_tokens: 600, shared_tokens: 512, output_tokens: 100 };
//! scheduler.enqueue(RequestId(1), demand)?;
//! // The pool says whether it has the pages, and how much of the prompt it turned out to share.
//! scheduler.admit(|_, demand, _pages| Some(demand.shared_tokens));
//! assert_eq!(scheduler.next_turn(), Turn::Prefill { id: RequestId(1), most_tokens: None });
//! assert!(scheduler.prefilled(RequestId(1), 88), "the prompt is complete");
//! assert_eq!(scheduler.next_turn(), Turn::Decode { steps: 4, may_speculate: true });
//! # Ok::<(), reprise_engine::lanes::policy::Refusal>(())
//! ```

use super::policy::{Demand, Policy, Refusal};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

/// A request, by a number its owner gives and never uses twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What to run next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// There are no requests.
    Idle,
    /// Requests wait, none runs, and the pool had no pages for any that may be admitted. As nothing is running,
    /// nothing will free pages: the caller makes room, or ends `first`, which arrived before all others.
    Blocked {
        /// The request that has waited longest.
        first: RequestId,
    },
    /// Compute prompt tokens of one request.
    Prefill {
        /// The request; the same one at every prefill until its prompt is complete or it leaves.
        id: RequestId,
        /// The most tokens this call may compute; `None`, with nobody waiting for the next token, for as many as the
        /// largest graph takes.
        most_tokens: Option<usize>,
    },
    /// Decode one token for every lane of [`Scheduler::decoding`].
    Decode {
        /// Steps until a prefill may come, one or more. Asking again after every step is as good, and lets a new
        /// request in sooner.
        steps: usize,
        /// The lane is alone, with nobody waiting: it may guess several tokens a step.
        may_speculate: bool,
    },
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waiting to be admitted.
    Queued {
        /// Requests that are offered pages before it, as things stand.
        ahead: usize,
        /// Later requests that went before it.
        overtaken: usize,
    },
    /// A lane whose prompt is being read.
    Prefill {
        /// Prompt tokens in place, shared ones included.
        done: usize,
        /// All prompt tokens.
        total: usize,
    },
    /// A lane that answers.
    Decode {
        /// Tokens that decode steps added to the lane's KV. The first token of the answer came from the prompt's
        /// logits and is not one of them until a step has taken it in.
        generated: usize,
    },
}

/// Decides over one pool of pages. See the module.
#[derive(Debug)]
pub struct Scheduler {
    policy: Policy,
    total_pages: usize,
    /// In order of arrival.
    queue: Vec<Request>,
    /// In order of admission.
    lanes: Vec<Lane>,
    /// The lane whose prompt is being read, from its first call until it is complete.
    selected: Option<RequestId>,
    steps_since_prefill: usize,
    arrivals: u64,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    id: RequestId,
    demand: Demand,
    /// Its place in the order of all requests ever enqueued.
    arrival: u64,
    /// Different later requests that were admitted before it or, after both were admitted, selected for prefill before
    /// it.
    overtaken: usize,
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    request: Request,
    progress: Progress,
}

#[derive(Debug, Clone, Copy)]
enum Progress {
    Prefill { done: usize },
    Decode { generated: usize },
}

impl Lane {
    fn is_prefilling(&self) -> bool {
        matches!(self.progress, Progress::Prefill { .. })
    }

    fn is_decoding(&self) -> bool {
        matches!(self.progress, Progress::Decode { .. })
    }

    /// Moves the prompt forward to `done` tokens in place; the last one makes the lane decode.
    fn set_done(&mut self, done: usize) {
        self.progress = if done < self.request.demand.prompt_tokens {
            Progress::Prefill { done }
        } else {
            Progress::Decode { generated: 0 }
        };
    }

    fn add_generated(&mut self, tokens: usize) {
        if let Progress::Decode { generated } = &mut self.progress {
            *generated = generated.saturating_add(tokens);
        }
    }

    fn surplus_tokens(&self, policy: &Policy) -> usize {
        match self.progress {
            Progress::Prefill { .. } => 0,
            Progress::Decode { generated } => {
                generated.saturating_sub(policy.guaranteed_tokens(&self.request.demand))
            }
        }
    }
}

impl Scheduler {
    /// A scheduler without requests over a pool of `total_pages`.
    pub fn new(policy: Policy, total_pages: usize) -> Scheduler {
        Scheduler {
            policy: policy.workable(),
            total_pages,
            queue: Vec::new(),
            lanes: Vec::new(),
            selected: None,
            steps_since_prefill: 0,
            arrivals: 0,
        }
    }

    /// The policy it keeps to, with its zeros made one.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Puts a request at the end of the queue, or refuses it for good when it would not fit an empty pool. Sharing does
    /// not save it from that: shared pages stand in the same pool as its own.
    pub fn enqueue(&mut self, id: RequestId, demand: Demand) -> Result<(), Refusal> {
        debug_assert!(self.phase(id).is_none(), "{id:?} is enqueued twice");
        let needed_pages = self.policy.footprint_pages(&demand);
        if needed_pages > self.total_pages {
            return Err(Refusal {
                prompt_tokens: demand.prompt_tokens,
                output_tokens: self.policy.guaranteed_tokens(&demand),
                needed_pages,
                total_pages: self.total_pages,
            });
        }
        self.queue.push(Request {
            id,
            demand,
            arrival: self.arrivals,
            overtaken: 0,
        });
        self.arrivals += 1;
        Ok(())
    }

    /// Offers queued requests to `reserve`, the one with the fewest tokens to compute first, until it takes one; that
    /// one becomes a lane and is returned. `None` when no lane is free or nothing that may be admitted fits. Call it
    /// until it returns `None` before each turn.
    ///
    /// `reserve` gets the request, what it asked for, and the [`Policy::pages`] of that. It holds the pages and returns
    /// how many tokens are shared now, which may be more or fewer than when the request came and changes the pages
    /// accordingly; or it returns `None` and holds nothing. It is asked again at every turn, so that a refusal must be
    /// cheap.
    pub fn admit(
        &mut self,
        mut reserve: impl FnMut(RequestId, &Demand, usize) -> Option<usize>,
    ) -> Option<RequestId> {
        if self.lanes.len() >= self.policy.lanes {
            return None;
        }
        let (arrival, shared_tokens) =
            self.contenders(self.queue.iter())
                .into_iter()
                .find_map(|request| {
                    let pages = self.policy.pages(&request.demand);
                    Some((request.arrival, reserve(request.id, &request.demand, pages)?))
                })?;
        let index = self.queue.iter().position(|request| request.arrival == arrival)?;
        // Everyone before it in the queue was passed over, whether it did not fit or was merely longer: both are
        // waiting, and a bound on only the first would let short prompts starve a long one.
        for passed in self.queue.iter_mut().take(index) {
            passed.overtaken += 1;
        }
        let mut request = self.queue.remove(index);
        request.demand.shared_tokens = shared_tokens;
        let mut lane = Lane {
            request,
            progress: Progress::Prefill { done: 0 },
        };
        lane.set_done(request.demand.reused_tokens());
        self.lanes.push(lane);
        Some(request.id)
    }

    /// What to run next. Asking again without a report in between gives the same answer, unless requests came or left.
    pub fn next_turn(&mut self) -> Turn {
        let decodes = self.lanes.iter().any(Lane::is_decoding);
        let prefills = self.lanes.iter().any(Lane::is_prefilling);
        let steps_left = self.policy.decode_steps.saturating_sub(self.steps_since_prefill);
        if decodes && !(prefills && steps_left == 0) {
            return Turn::Decode {
                steps: steps_left.max(1),
                may_speculate: self.lanes.len() == 1 && self.queue.is_empty(),
            };
        }
        if let Some(id) = self.select_prefill() {
            return Turn::Prefill {
                id,
                most_tokens: decodes.then_some(self.policy.mixed_prefill_tokens),
            };
        }
        match self.queue.first() {
            Some(request) => Turn::Blocked { first: request.id },
            None => Turn::Idle,
        }
    }

    /// A prefill call computed `tokens` of the lane's prompt, whether they completed it or not. Returns whether the
    /// prompt is complete, from where on the lane decodes.
    pub fn prefilled(&mut self, id: RequestId, tokens: usize) -> bool {
        self.steps_since_prefill = 0;
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.request.id == id) else {
            return false;
        };
        if let Progress::Prefill { done } = lane.progress {
            lane.set_done(done.saturating_add(tokens));
        }
        let is_complete = lane.is_decoding();
        if is_complete && self.selected == Some(id) {
            self.selected = None;
        }
        is_complete
    }

    /// So many tokens of the lane's prompt are in place now, be it more than before or fewer. As
    /// [`Scheduler::prefilled`], for calls that do not compute one token after the other.
    pub fn set_prefilled(&mut self, id: RequestId, done: usize) -> bool {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.request.id == id)
            && !lane.is_decoding()
        {
            lane.set_done(done);
        }
        self.prefilled(id, 0)
    }

    /// One decode step ran over all decoding lanes and added a token to each.
    pub fn decoded(&mut self) {
        for lane in &mut self.lanes {
            lane.add_generated(1);
        }
        self.count_step();
    }

    /// One speculative round ran for the lane that is alone and added `tokens`: the accepted guesses and the one after
    /// them. It is one step of the cadence however many they are, as it took one call.
    pub fn speculated(&mut self, id: RequestId, tokens: usize) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.request.id == id) {
            lane.add_generated(tokens);
        }
        self.count_step();
    }

    /// Forgets a request in any phase, whether it is done, cancelled, failed or disconnected. Returns whether it was
    /// there.
    pub fn remove(&mut self, id: RequestId) -> bool {
        let before = self.queue.len() + self.lanes.len();
        self.queue.retain(|request| request.id != id);
        self.lanes.retain(|lane| lane.request.id != id);
        if self.selected == Some(id) {
            self.selected = None;
        }
        self.queue.len() + self.lanes.len() < before
    }

    /// The lane to stop, saying so, when a page that was promised cannot be had: of those beyond their guaranteed
    /// output the one that is furthest beyond, of equals the one admitted last. `None` when every lane is within what it
    /// was promised.
    pub fn capacity_victim(&self) -> Option<RequestId> {
        self.lanes
            .iter()
            .filter(|lane| lane.surplus_tokens(&self.policy) > 0)
            .max_by_key(|lane| lane.surplus_tokens(&self.policy))
            .map(|lane| lane.request.id)
    }

    /// How many tokens a lane is beyond its guaranteed output; zero for everything else. A lane with a surplus may only
    /// take pages that are spare.
    pub fn surplus_tokens(&self, id: RequestId) -> usize {
        self.lane(id).map_or(0, |lane| lane.surplus_tokens(&self.policy))
    }

    /// Where a request stands; `None` when it is not here.
    pub fn phase(&self, id: RequestId) -> Option<Phase> {
        let Some(lane) = self.lane(id) else {
            return self.queued_phase(id);
        };
        Some(match lane.progress {
            Progress::Prefill { done } => Phase::Prefill {
                done,
                total: lane.request.demand.prompt_tokens,
            },
            Progress::Decode { generated } => Phase::Decode { generated },
        })
    }

    /// Lanes that decode, in the order they were admitted: the rows of a decode step.
    pub fn decoding(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.lanes
            .iter()
            .filter(|lane| lane.is_decoding())
            .map(|lane| lane.request.id)
    }

    /// How many requests wait to be admitted.
    pub fn queued_count(&self) -> usize {
        self.queue.len()
    }

    /// How many requests are active.
    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    fn lane(&self, id: RequestId) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.request.id == id)
    }

    fn is_aged(&self, request: &Request) -> bool {
        request.overtaken >= self.policy.overtakes
    }

    fn count_step(&mut self) {
        self.steps_since_prefill = self.steps_since_prefill.saturating_add(1);
    }

    /// Those of a line that may go next, shortest first, equals in order of arrival. One that was overtaken as often as
    /// it may be closes the line behind itself.
    fn contenders<'a>(&self, line: impl Iterator<Item = &'a Request>) -> Vec<&'a Request> {
        let mut is_closed = false;
        let mut contenders: Vec<_> = line
            .take_while(|request| !std::mem::replace(&mut is_closed, self.is_aged(request)))
            .collect();
        contenders.sort_by_key(|request| (request.demand.tokens_to_compute(), request.arrival));
        contenders
    }

    /// The lane whose prompt is read next: the one being read, or else the shortest. Admission kept the bound on
    /// overtaking, and it holds here too: a short prompt admitted after a long one must not hold that up more often. One
    /// that was admitted before it was counted then.
    fn select_prefill(&mut self) -> Option<RequestId> {
        if self.selected.is_some() {
            return self.selected;
        }
        let pending = self.lanes.iter().filter(|lane| lane.is_prefilling());
        let chosen = **self.contenders(pending.map(|lane| &lane.request)).first()?;
        let admitted_before = self
            .lanes
            .iter_mut()
            .take_while(|lane| lane.request.id != chosen.id);
        for lane in admitted_before {
            if lane.is_prefilling() && lane.request.arrival < chosen.arrival {
                lane.request.overtaken += 1;
            }
        }
        self.selected = Some(chosen.id);
        self.selected
    }

    /// The phase of a queued request. Those that arrived behind one that closes the queue are offered after it, however
    /// short they are.
    fn queued_phase(&self, id: RequestId) -> Option<Phase> {
        let mut closed = 0;
        let mut order: Vec<_> = self
            .queue
            .iter()
            .map(|request| {
                let place = (closed, request.demand.tokens_to_compute());
                closed += usize::from(self.is_aged(request));
                (place, request)
            })
            .collect();
        order.sort_by_key(|(place, _)| *place);
        let ahead = order.iter().position(|(_, request)| request.id == id)?;
        let (_, request) = order.get(ahead)?;
        Some(Phase::Queued {
            ahead,
            overtaken: request.overtaken,
        })
    }
}

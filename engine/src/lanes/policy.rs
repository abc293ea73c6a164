//! What a request takes and what the lanes promise it: the arithmetic under the scheduler.

/// How lanes are shared. Numbers that must not be zero are taken as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The most requests that are active at once. Four.
    pub lanes: usize,
    /// Decode steps between two prefill calls while any lane decodes. Four.
    pub decode_steps: usize,
    /// The most prompt tokens of one prefill call while any lane decodes: what a reader of a growing answer waits for.
    /// 64.
    pub mixed_prefill_tokens: usize,
    /// Output tokens whose pages are reserved before a request starts; what goes beyond lives on spare pages. 8192.
    pub guaranteed_output: usize,
    /// How many later requests may go before one that waits. Eight; zero serves strictly in order of arrival.
    pub overtakes: usize,
    /// Token positions of a page. 256.
    pub page_tokens: usize,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            lanes: 4,
            decode_steps: 4,
            mixed_prefill_tokens: 64,
            guaranteed_output: 8_192,
            overtakes: 8,
            page_tokens: 256,
        }
    }
}

impl Policy {
    /// The pages to reserve for `demand`: its prompt and guaranteed output, without the whole pages it shares. A page
    /// shared in part counts, because it is copied when it is written to.
    pub fn pages(&self, demand: &Demand) -> usize {
        let shared_pages = demand.reused_tokens() / self.page_tokens.max(1);
        self.footprint_pages(demand).saturating_sub(shared_pages)
    }

    /// The pages `demand` takes up in the pool, shared or not: what it needs even when nobody else is there.
    pub fn footprint_pages(&self, demand: &Demand) -> usize {
        demand
            .prompt_tokens
            .saturating_add(self.guaranteed_tokens(demand))
            .div_ceil(self.page_tokens.max(1))
    }

    /// The output tokens `demand` is sure to have room for.
    pub fn guaranteed_tokens(&self, demand: &Demand) -> usize {
        demand.output_tokens.min(self.guaranteed_output)
    }

    /// The same policy with every number that must not be zero at one or more.
    pub(super) fn workable(self) -> Policy {
        Policy {
            lanes: self.lanes.max(1),
            decode_steps: self.decode_steps.max(1),
            mixed_prefill_tokens: self.mixed_prefill_tokens.max(1),
            page_tokens: self.page_tokens.max(1),
            ..self
        }
    }
}

/// What one request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Length of the whole prompt.
    pub prompt_tokens: usize,
    /// How many of them, from the start of the prompt, are shared with something already in memory.
    pub shared_tokens: usize,
    /// The most output tokens asked for.
    pub output_tokens: usize,
}

impl Demand {
    /// Prompt tokens that need no computing. The last one always does: the first output token comes from its logits.
    pub fn reused_tokens(&self) -> usize {
        self.shared_tokens.min(self.prompt_tokens.saturating_sub(1))
    }

    /// Prompt tokens that have to be computed before the lane can decode.
    pub fn tokens_to_compute(&self) -> usize {
        self.prompt_tokens - self.reused_tokens()
    }
}

/// A request that cannot fit however long it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a prompt of {prompt_tokens} tokens with {output_tokens} tokens of answer takes {needed_pages} pages of memory, and \
     there are {total_pages}: shorten the prompt or raise the memory limit"
)]
pub struct Refusal {
    /// The whole prompt.
    pub prompt_tokens: usize,
    /// The output that would have been guaranteed.
    pub output_tokens: usize,
    /// Pages for both, shared or not.
    pub needed_pages: usize,
    /// Pages of the pool.
    pub total_pages: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(prompt_tokens: usize, shared_tokens: usize, output_tokens: usize) -> usize {
        Policy::default().pages(&Demand {
            prompt_tokens,
            shared_tokens,
            output_tokens,
        })
    }

    #[test]
    fn a_reservation_is_the_prompt_and_the_guaranteed_output_rounded_up_to_pages() {
        assert_eq!(pages(1, 0, 0), 1);
        assert_eq!(pages(200, 0, 56), 1);
        assert_eq!(pages(200, 0, 57), 2);
        assert_eq!(pages(256, 0, 8_192), 33);
    }

    #[test]
    fn output_beyond_the_guarantee_is_not_reserved() {
        assert_eq!(pages(256, 0, 16_384), pages(256, 0, 8_192));
        assert_eq!(pages(256, 0, usize::MAX), 33);
        // Numbers no machine has room for are still numbers.
        assert_eq!(pages(usize::MAX, 0, 1), usize::MAX.div_ceil(256));
    }

    #[test]
    fn only_whole_shared_pages_are_left_out() {
        assert_eq!(pages(1_000, 255, 24), 4);
        assert_eq!(pages(1_000, 256, 24), 3);
        assert_eq!(pages(1_000, 767, 24), 2);
    }

    #[test]
    fn the_last_prompt_token_is_never_shared() {
        // The page it stands in will be written to, so that a prompt shared to its end still needs that page.
        assert_eq!(pages(512, 512, 0), 1);
        assert_eq!(pages(512, 9_999, 0), 1);
        let demand = Demand {
            prompt_tokens: 512,
            shared_tokens: 512,
            output_tokens: 0,
        };
        assert_eq!(demand.tokens_to_compute(), 1);
    }
}

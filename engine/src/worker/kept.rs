//! What requests leave behind: the tokens and pages of ended ones, so that a prompt that begins alike reads only what is
//! new. Pages are held by reference count; nothing here is ever needed for a correct answer.

use crate::api::TokenId;
use reprise_kv::pool::Sequence;
use reprise_kv::store::Owner;

/// The sequences of ended requests, the most recently used last.
#[derive(Debug, Default)]
pub(super) struct Kept {
    entries: Vec<Entry>,
}

/// One ended request.
#[derive(Debug)]
pub(super) struct Entry {
    pub tokens: Vec<TokenId>,
    pub sequence: Sequence,
    /// How many of the tokens were computed with nothing but exact tokens before them.
    pub exact_tokens: usize,
    /// Who asked.
    pub owner: String,
    /// Whose the tokens are.
    pub holders: Vec<Owner>,
}

/// Length of the common beginning.
pub(super) fn common(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Kept {
    /// Keeps an ended request. What the new one contains is let go: its pages are the same.
    pub fn keep(
        &mut self,
        tokens: Vec<TokenId>,
        sequence: Sequence,
        exact_tokens: usize,
        owner: String,
        holders: Vec<Owner>,
    ) {
        debug_assert_eq!(tokens.len(), sequence.len());
        if tokens.is_empty() {
            return;
        }
        self.entries.retain(|entry| !tokens.starts_with(&entry.tokens));
        if self.entries.iter().any(|entry| entry.tokens.starts_with(&tokens)) {
            return;
        }
        self.entries.push(Entry {
            tokens,
            sequence,
            exact_tokens,
            owner,
            holders,
        });
    }

    /// The longest common beginning with a prompt, a fork of it, and how many tokens of it are exact; marks it as used.
    pub fn fork(&mut self, prompt: &[TokenId], most: usize) -> Option<(Sequence, usize)> {
        let (best, len) = self.best(prompt)?;
        let entry = self.entries.remove(best);
        let fork = entry.sequence.fork(len.min(most));
        let exact_tokens = entry.exact_tokens.min(fork.len());
        self.entries.push(entry);
        Some((fork, exact_tokens))
    }

    /// Length of the longest common beginning with a prompt.
    pub fn longest(&self, prompt: &[TokenId]) -> usize {
        self.best(prompt).map_or(0, |(_, len)| len)
    }

    fn best(&self, prompt: &[TokenId]) -> Option<(usize, usize)> {
        let lens = self.entries.iter().map(|entry| common(&entry.tokens, prompt));
        // Of equals the most recent.
        lens.enumerate()
            .max_by_key(|&(i, len)| (len, i))
            .filter(|&(_, len)| len > 0)
    }

    /// Lets the least recently used one go; false when there is none.
    pub fn evict(&mut self) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        self.entries.remove(0);
        true
    }

    /// Pages that would come free at most if all were let go.
    pub fn pages(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| entry.sequence.pages().len())
            .sum()
    }

    /// Every entry, the least recently used first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Lets go what is an owner's.
    pub fn erase(&mut self, owner: &Owner) {
        self.entries.retain(|entry| !entry.holders.contains(owner));
    }

    /// Lets all go.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_kv::pool::PagePool;

    fn sequence(pool: &PagePool, len: usize) -> Sequence {
        let mut sequence = pool.sequence();
        sequence.prepare(len, None).unwrap();
        sequence.commit(len);
        sequence
    }

    #[test]
    fn the_longest_beginning_is_found_and_contained_ones_are_let_go() {
        let pool = PagePool::new(&[64], 8).unwrap();
        let mut kept = Kept::default();
        kept.keep(vec![1, 2, 3], sequence(&pool, 3), 3, "a".into(), vec![]);
        kept.keep(vec![1, 2, 9, 9], sequence(&pool, 4), 2, "b".into(), vec![]);
        assert_eq!(kept.longest(&[1, 2, 3, 4]), 3);
        let (fork, exact_tokens) = kept.fork(&[1, 2, 9, 9, 9], 3).unwrap();
        assert_eq!((fork.len(), exact_tokens), (3, 2));
        drop(fork);
        assert!(kept.fork(&[7], 1).is_none());
        kept.keep(vec![1, 2, 3, 4], sequence(&pool, 4), 4, "a".into(), vec![]);
        assert_eq!(kept.entries().len(), 2);
        kept.keep(vec![1, 2], sequence(&pool, 2), 2, "c".into(), vec![]);
        assert_eq!(kept.entries().len(), 2, "what is contained is not kept twice");
        let owner = Owner::new("chat", "7").unwrap();
        kept.keep(vec![5, 6], sequence(&pool, 2), 2, "d".into(), vec![owner.clone()]);
        kept.erase(&owner);
        assert_eq!((kept.entries().len(), kept.longest(&[5, 6])), (2, 0));
        assert!(kept.evict() && kept.evict() && !kept.evict());
        assert_eq!(pool.usage().used, 0);
    }
}

//! Prompts as segments with owners, and the chunks they are cut into.

use reprise_kv::store::{CHUNK_TOKENS, Owner};
use std::ops::Range;

/// What a segment of a prompt is (DESIGN section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// Instructions that stand before everything else.
    System,
    /// A skill's text.
    Skill,
    /// A passage of a document, or of an earlier conversation.
    Passage,
    /// What was said, and what the template writes between.
    Turn,
    /// What is asked now.
    Question,
}

impl SegmentKind {
    /// Whether it comes again elsewhere, as it is: then no chunk reaches over its ends.
    fn stands_alone(self) -> bool {
        matches!(
            self,
            SegmentKind::System | SegmentKind::Skill | SegmentKind::Passage
        )
    }
}

/// A stretch of a prompt with one owner. Its tokens follow those of the segment before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// What it is.
    pub kind: SegmentKind,
    /// Whose it is: chunks are erased with their owner. What belongs to nobody is not stored.
    pub owner: Option<Owner>,
    /// How many tokens it has.
    pub tokens: usize,
}

/// A chunk to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Which tokens.
    pub tokens: Range<usize>,
    /// Whose they are; of several owners the first. What belongs to nobody is not stored.
    pub owner: Option<Owner>,
    /// Whether it is a whole segment, or a part of one, that stands alone.
    pub stands_alone: bool,
}

/// Cuts segments into chunks of at most 256 tokens. A segment that stands alone is cut by itself, into equal parts, so
/// that it is always cut alike; others of one owner are joined and cut from where they begin, so that more tokens behind
/// them leave the chunks before as they are.
pub fn cut(segments: &[Segment]) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let mut start = 0;
    for segment in segments.iter().filter(|segment| segment.tokens > 0) {
        let end = start + segment.tokens;
        if segment.kind.stands_alone() {
            let parts = segment.tokens.div_ceil(CHUNK_TOKENS);
            cuts.extend((0..parts).map(|part| Cut {
                tokens: start + segment.tokens * part / parts..start + segment.tokens * (part + 1) / parts,
                owner: segment.owner.clone(),
                stands_alone: true,
            }));
        } else {
            let mut from = start;
            let joins = |last: &&mut Cut| !last.stands_alone && last.owner == segment.owner;
            if let Some(last) = cuts.last_mut().filter(joins) {
                from = end.min(last.tokens.start + CHUNK_TOKENS);
                last.tokens.end = from;
            }
            cuts.extend((from..end).step_by(CHUNK_TOKENS).map(|from| Cut {
                tokens: from..end.min(from + CHUNK_TOKENS),
                owner: segment.owner.clone(),
                stands_alone: false,
            }));
        }
        start = end;
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(kind: SegmentKind, tokens: usize) -> Segment {
        Segment {
            kind,
            owner: Some(Owner::new("chat", "1").unwrap()),
            tokens,
        }
    }

    fn ranges(segments: &[Segment]) -> Vec<Range<usize>> {
        cut(segments).into_iter().map(|cut| cut.tokens).collect()
    }

    #[test]
    fn passages_are_cut_by_themselves_and_turns_together() {
        use SegmentKind::{Passage, Question, System, Turn};
        let prompt = [
            segment(System, 20),
            segment(Turn, 5),
            segment(Turn, 300),
            segment(Passage, 300),
            segment(Passage, 0),
            segment(Passage, 30),
            segment(Question, 12),
            segment(Turn, 3),
        ];
        assert_eq!(
            ranges(&prompt),
            [0..20, 20..276, 276..325, 325..475, 475..625, 625..655, 655..670]
        );
    }

    proptest! {
        #[test]
        fn every_token_is_in_one_chunk_and_longer_turns_keep_earlier_chunks(
            parts in prop::collection::vec((0usize..5, 0usize..700), 0..8),
            more in 1usize..500,
        ) {
            use SegmentKind::{Passage, Question, Skill, System, Turn};
            let mut segments: Vec<Segment> = parts
                .iter()
                .map(|&(kind, tokens)| segment([System, Skill, Passage, Turn, Question][kind], tokens))
                .collect();
            let before = ranges(&segments);
            let mut end = 0;
            for range in &before {
                prop_assert!(range.start == end && !range.is_empty() && range.len() <= CHUNK_TOKENS);
                end = range.end;
            }
            prop_assert_eq!(end, parts.iter().map(|(_, tokens)| tokens).sum::<usize>());
            segments.push(segment(Turn, more));
            let after = ranges(&segments);
            let kept = before.len().saturating_sub(1);
            prop_assert_eq!(&after[..kept], &before[..kept]);
        }
    }
}

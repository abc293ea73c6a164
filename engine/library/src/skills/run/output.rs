//! What a process writes, kept up to a limit: the beginning, and the end, where errors are.

use std::collections::VecDeque;

/// The share of the limit that the end gets.
const TAIL_SHARE: usize = 4;

/// Collects output.
#[derive(Debug)]
pub(super) struct Collected {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    /// All bytes that came.
    pub(super) bytes: u64,
}

impl Collected {
    pub(super) fn new(limit: usize) -> Collected {
        let tail_limit = limit / TAIL_SHARE;
        Collected {
            head: Vec::new(),
            head_limit: limit - tail_limit,
            tail: VecDeque::new(),
            tail_limit,
            bytes: 0,
        }
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let room = self.head_limit - self.head.len();
        let (head, rest) = piece.split_at(room.min(piece.len()));
        self.head.extend_from_slice(head);
        let rest = rest
            .get(rest.len().saturating_sub(self.tail_limit)..)
            .unwrap_or_default();
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(self.tail_limit);
        self.tail.drain(..surplus);
    }

    /// The text, and how many bytes are not in it.
    pub(super) fn text(&self) -> (String, u64) {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let left_out = self.bytes - kept;
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let mut text;
        if left_out == 0 {
            text = String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        } else {
            text = String::from_utf8_lossy(&self.head).into_owned();
            text += &format!("\n[{left_out} bytes left out]\n");
            text += &String::from_utf8_lossy(&tail);
        }
        // Nothing that a terminal would obey.
        text.retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
        (text, left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut collected = Collected::new(8);
        collected.add(b"abc");
        assert_eq!(collected.text(), ("abc".into(), 0));
        collected.add(b"defgh");
        assert_eq!(collected.text(), ("abcdefgh".into(), 0));
        collected.add(b"ijklm");
        collected.add(b"n\x1b[31m");
        let (text, left_out) = collected.text();
        assert_eq!((text.as_str(), left_out), ("abcdef\n[11 bytes left out]\n1m", 11));
    }
}

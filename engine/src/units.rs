//! Sizes in the words of messages.

/// Bytes as a person reads them, rounded up: what is needed is never named too small.
pub(crate) fn megabytes(bytes: u64) -> String {
    match bytes {
        0..100_000 => format!("{} kB", bytes.div_ceil(1_000)),
        100_000..10_000_000 => format!("{:.1} MB", bytes.div_ceil(100_000) as f64 / 10.0),
        _ => format!("{} MB", bytes.div_ceil(1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::megabytes;

    #[test]
    fn sizes_are_rounded_up() {
        let sizes = [0, 1, 99_999, 100_001, 6_265_000, 1_000_000_001];
        let texts = ["0 kB", "1 kB", "100 kB", "0.2 MB", "6.3 MB", "1001 MB"];
        assert_eq!(sizes.map(megabytes), texts);
    }
}

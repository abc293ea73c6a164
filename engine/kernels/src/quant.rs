//! The tensor types a GGUF file may hold: how many values a block has, how many bytes it takes, and a plain
//! dequantiser for each. This is the reference every fast path is tested against.

/// A tensor's element type, as stored in a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum QuantType {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Iq4Nl,
    Mxfp4,
}

//! The tensor types a GGUF file may hold: how many values a block has, how many bytes it takes, and a plain
//! dequantiser for each. This is the reference every fast path is tested against.

/// A tensor's element type, as stored in a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

impl QuantType {
    /// Every type, in the order of [`QuantType`].
    pub const ALL: [QuantType; 15] = {
        use QuantType::*;
        [F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2K, Q3K, Q4K, Q5K, Q6K, Iq4Nl, Mxfp4]
    };

    /// The number a GGUF file writes for this type.
    pub const fn ggml_id(self) -> u32 {
        self.facts().0
    }

    /// The type a GGUF file means by `id`, or `None` when it is not one of ours.
    pub fn from_ggml_id(id: u32) -> Option<QuantType> {
        Self::ALL.into_iter().find(|ty| ty.ggml_id() == id)
    }

    /// Values in one block; a row's length is a multiple of it.
    pub const fn block_len(self) -> usize {
        self.facts().1
    }

    /// Bytes of one block.
    pub const fn block_bytes(self) -> usize {
        self.facts().2
    }

    /// The name people know the type by, for example `Q4_K`.
    pub const fn name(self) -> &'static str {
        self.facts().3
    }

    /// Bytes of `values` values, or `None` when they are not whole blocks or the product overflows.
    pub fn bytes_for(self, values: usize) -> Option<usize> {
        if !values.is_multiple_of(self.block_len()) {
            return None;
        }
        (values / self.block_len()).checked_mul(self.block_bytes())
    }

    /// GGUF id, values per block, bytes per block, name.
    const fn facts(self) -> (u32, usize, usize, &'static str) {
        match self {
            QuantType::F32 => (0, 1, 4, "F32"),
            QuantType::F16 => (1, 1, 2, "F16"),
            QuantType::BF16 => (30, 1, 2, "BF16"),
            QuantType::Q4_0 => (2, 32, 18, "Q4_0"),
            QuantType::Q4_1 => (3, 32, 20, "Q4_1"),
            QuantType::Q5_0 => (6, 32, 22, "Q5_0"),
            QuantType::Q5_1 => (7, 32, 24, "Q5_1"),
            QuantType::Q8_0 => (8, 32, 34, "Q8_0"),
            QuantType::Q2K => (10, 256, 84, "Q2_K"),
            QuantType::Q3K => (11, 256, 110, "Q3_K"),
            QuantType::Q4K => (12, 256, 144, "Q4_K"),
            QuantType::Q5K => (13, 256, 176, "Q5_K"),
            QuantType::Q6K => (14, 256, 210, "Q6_K"),
            QuantType::Iq4Nl => (20, 32, 18, "IQ4_NL"),
            QuantType::Mxfp4 => (39, 32, 17, "MXFP4"),
        }
    }
}

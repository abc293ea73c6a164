//! The tensor types a GGUF file may hold: how many values a block has, how many bytes it takes, and a plain
//! dequantiser for each. This is the reference every fast path is tested against.
//!
//! [`dequantize`] knows every [`QuantType`]; [`quantize`] knows the simple ones, enough to make weights for tests. Both
//! check lengths first and never panic, whatever the bytes are.
//!
//! ```
//! use reprise_kernels::quant::{QuantType, dequantize, quantize};
//!
//! let weights: Vec<f32> = (0..32).map(|i| i as f32 / 31.0 - 0.5).collect();
//! let mut block = [0u8; 34];
//! quantize(QuantType::Q8_0, &weights, &mut block)?;
//! let mut back = [0f32; 32];
//! dequantize(QuantType::Q8_0, &block, &mut back)?;
//! assert!(weights.iter().zip(back).all(|(a, b)| (a - b).abs() < 0.003));
//! # Ok::<(), reprise_kernels::quant::QuantError>(())
//! ```

mod dequantize;
mod quantize;

pub use dequantize::dequantize;
pub use quantize::quantize;

use std::fmt;

/// Why a row could not be converted. The buffers are untouched then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantError {
    /// The number of values is not a multiple of the type's block length.
    PartialBlock {
        /// The type asked for.
        ty: QuantType,
        /// How many values there are.
        values: usize,
    },
    /// The byte buffer does not have the length that the values need.
    WrongLength {
        /// The type asked for.
        ty: QuantType,
        /// How many values there are.
        values: usize,
        /// Bytes that so many values take.
        expected_bytes: usize,
        /// Bytes that were given.
        actual_bytes: usize,
    },
    /// [`quantize`] has no encoder for this type.
    NoQuantizer {
        /// The type asked for.
        ty: QuantType,
    },
}

impl fmt::Display for QuantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            QuantError::PartialBlock { ty, values } => {
                write!(
                    f,
                    "{values} values are not whole {} blocks of {}",
                    ty.name(),
                    ty.block_len()
                )
            }
            QuantError::WrongLength {
                ty,
                values,
                expected_bytes,
                actual_bytes,
            } => write!(
                f,
                "{values} values of {} take {expected_bytes} bytes, the buffer has {actual_bytes}",
                ty.name()
            ),
            QuantError::NoQuantizer { ty } => write!(f, "{} can be read but not written here", ty.name()),
        }
    }
}

impl std::error::Error for QuantError {}

/// Succeeds when `bytes` bytes are exactly `values` values of `ty`, in whole blocks.
fn check_lengths(ty: QuantType, values: usize, bytes: usize) -> Result<(), QuantError> {
    match ty.bytes_for(values) {
        None => Err(QuantError::PartialBlock { ty, values }),
        Some(expected) if expected != bytes => Err(QuantError::WrongLength {
            ty,
            values,
            expected_bytes: expected,
            actual_bytes: bytes,
        }),
        Some(_) => Ok(()),
    }
}

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
        [
            F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2K, Q3K, Q4K, Q5K, Q6K, Iq4Nl, Mxfp4,
        ]
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

//! Key and value memory of a running model: one pool of pages that all sequences share, in formats of sixteen, eight or
//! four bits, and typed views of it for the engine's backends.
//!
//! The pool is not a cache policy and knows nothing of tokens: the engine decides what the positions hold. What is kept
//! beyond a sequence's life is the [`store`]'s matter: chunks on disk, found by their tokens.
//!
//! ```
//! use reprise_kernels::isa::Isa;
//! use reprise_kernels::kv::KvFormat;
//! use reprise_kv::{KvLanes, KvProfile, LayerLayout, LayerShape};
//!
//! // One layer of two key heads, in four bits.
//! let shapes = [LayerShape { kv_heads: 2, head_dim: 64 }];
//! let layouts = KvProfile::uniform(&shapes, KvFormat::Tq4, KvFormat::Tq4).layouts(&shapes)?;
//! let pool = LayerLayout::pool(&layouts, 4)?;
//!
//! let mut sequences = [pool.sequence()];
//! sequences[0].prepare(300, None)?;
//! let lanes = KvLanes::new(&layouts, &mut sequences);
//! // SAFETY: position 299 was prepared, and no other thread writes it.
//! unsafe { lanes.layer(0, 0).write(Isa::best(), 0, 299, &[1.0; 64], &[2.0; 64]) };
//! sequences[0].commit(300);
//! assert_eq!(pool.usage().used, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod layout;
mod moving;
pub mod pool;
mod profile;
pub mod store;
mod view;

pub use layout::{LayerLayout, LayerShape};
pub use profile::{KvProfile, LayerProfile, ProfileMismatch, ResidualKeys};
pub use reprise_kernels::kv::KvFormat;
pub use view::{Arrivals, HeadKv, KvLanes, LayerKv, Lost};

/// Positions in a page.
pub const PAGE_TOKENS: usize = 256;

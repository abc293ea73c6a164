//! Numbers only: quantised formats, matrix products over packed weights, attention, rotary positions and norms, each
//! fast path beside a plain twin that tests hold it to.
//!
//! It is not a tensor library and knows nothing of models, files or threads: callers hand panels, tiles and heads to
//! threads as they like. A result does not depend on that, nor on how many rows are computed together.
//!
//! ```
//! use reprise_kernels::activations::{Activations, Forms};
//! use reprise_kernels::isa::Isa;
//! use reprise_kernels::matmul::{Output, Scratch, Store, matmul_panel};
//! use reprise_kernels::packed::Packing;
//! use reprise_kernels::quant::{QuantType, quantize};
//!
//! // Sixteen rows of 32 weights, all 0.5, in four bits.
//! let mut file = vec![0; 16 * QuantType::Q4_1.bytes_for(32).unwrap()];
//! quantize(QuantType::Q4_1, &[0.5; 16 * 32], &mut file).unwrap();
//! let mut packing = Packing::new(QuantType::Q4_1, 16, 32, &file)?;
//! packing.panels().for_each(|panel| panel.pack());
//! let weights = packing.finish();
//!
//! // One token of 32 ones.
//! let isa = Isa::best();
//! let mut x = Activations::new(1, 32, Forms { quantised: true, float: false });
//! let tiles = x.begin(1, 32);
//! // SAFETY: one thread fills the only tile.
//! unsafe { tiles.fill(isa, 0, &[1.0; 32]) };
//!
//! let mut y = [0.0; 16];
//! let out = Output::new(&mut y, 16);
//! // SAFETY: one thread works on the only panel.
//! unsafe { matmul_panel(isa, &weights, 0, &x, None, &out, Store::Set, &mut Scratch::new(1)) };
//! assert!(y.iter().all(|y| (y - 16.0).abs() < 1e-3));
//! # Ok::<(), reprise_kernels::packed::ShapeError>(())
//! ```

pub mod activations;
pub mod attention;
pub mod buffer;
pub mod encoder;
pub mod half;
pub mod isa;
pub mod kv;
pub mod math;
pub mod matmul;
pub mod packed;
pub mod peak;
pub mod quant;

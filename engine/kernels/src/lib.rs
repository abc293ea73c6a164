//! Numbers only: quantised formats, matrix kernels, attention, rotary positions and norms.

pub mod activations;
pub mod attention;
pub mod buffer;
pub mod half;
pub mod isa;
pub mod math;
pub mod matmul;
pub mod packed;
pub mod peak;
pub mod quant;

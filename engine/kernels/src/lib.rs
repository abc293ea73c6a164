//! Numbers only: quantised formats, matrix kernels, attention, rotary positions and norms.

pub mod half;
pub mod quant;

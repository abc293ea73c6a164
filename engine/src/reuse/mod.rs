//! Reuse: what is kept of earlier prompts put to use in the next one. [`read`] computes what has to be computed of a
//! prompt that is partly known; [`schedule`] decides which graph computes what where graphs have a fixed size.

pub mod cut;
pub mod explain;
pub mod keeper;
pub mod read;
pub mod schedule;

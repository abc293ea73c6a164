//! Reuse: what is kept of earlier prompts put to use in the next one. [`read`] computes what has to be computed of a
//! prompt that is partly known; [`schedule`] finds the list of calls that takes the least time, from what they cost here
//! ([`costs`]).

pub mod costs;
pub mod cut;
pub mod explain;
pub mod keeper;
pub mod read;
pub mod schedule;

//! Reuse: what is kept of earlier prompts put to use in the next one. [`schedule`] decides which graph computes what is
//! left to compute.

pub mod schedule;

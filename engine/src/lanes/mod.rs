//! Lanes: several requests answered at once from one pool of pages.
//!
//! [`policy`] says what a request takes, [`scheduler`] who is admitted and what is run next. Neither holds a clock, a
//! thread or a page: they decide, and whoever owns the backend and the pool carries it out.

pub mod policy;
pub mod scheduler;

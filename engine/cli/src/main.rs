//! The `reprise` command.
fn main() {}

//! `reprise` as a person runs it: one program, since linking takes longer than compiling.

mod answers;
mod chat;
mod chats;
mod common;
mod errors;
mod index;
mod reuse;
mod serve;
mod skill;
mod top;
mod workload;

//! Reading documents: one program, since linking takes longer than compiling.

mod formats;
mod hostile;
mod made;
mod pdf;
mod real_documents;
mod recognition;

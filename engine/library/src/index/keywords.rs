//! The keyword index (BM25) on disk. It holds nothing that is not in the database, and is made anew out of it when it is
//! missing or damaged.

use std::path::{Path, PathBuf};

use tantivy::collector::TopDocs;
use tantivy::directory::MmapDirectory;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, Occur, Query, TermQuery, TermSetQuery};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{
    Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TantivyDocument, TantivyError, Term,
};

use super::types::{DocumentId, PassageId, StoredPassage};
use crate::terms;

const ANALYZER: &str = "terms";
/// Working memory of the writer.
const WRITER_BYTES: usize = 32 << 20;
/// What a word in a title counts beside one in the text.
const TITLE_WEIGHT: f32 = 0.5;

pub(super) struct Keywords {
    folder: PathBuf,
    index: Index,
    reader: IndexReader,
    fields: Fields,
}

#[derive(Clone, Copy)]
struct Fields {
    passage: Field,
    document: Field,
    text: Field,
    title: Field,
}

/// Changes that are there with the next commit.
pub(super) struct KeywordsWriter {
    writer: IndexWriter,
    fields: Fields,
}

impl Keywords {
    /// Opens what is in the folder.
    pub(super) fn open(folder: &Path) -> Result<Keywords, TantivyError> {
        let index = Index::open_in_dir(folder)?;
        let (schema, fields) = schema();
        if index.schema() != schema {
            return Err(TantivyError::SchemaError("it was made by another version".into()));
        }
        if let Some(file) = index.validate_checksum()?.into_iter().next() {
            return Err(TantivyError::SystemError(format!(
                "{} is not what was written",
                file.display()
            )));
        }
        Keywords::new(folder, index, fields)
    }

    /// Makes an empty one in place of what is in the folder.
    pub(super) fn create(folder: &Path) -> Result<Keywords, TantivyError> {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        std::fs::create_dir_all(folder)?;
        let (schema, fields) = schema();
        let index = Index::create(MmapDirectory::open(folder)?, schema, IndexSettings::default())?;
        Keywords::new(folder, index, fields)
    }

    fn new(folder: &Path, mut index: Index, fields: Fields) -> Result<Keywords, TantivyError> {
        // With those that come along: fields of numbers ask for one, too.
        let analyzers = TokenizerManager::default();
        analyzers.register(ANALYZER, terms::analyzer());
        index.set_tokenizers(analyzers);
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        Ok(Keywords {
            folder: folder.to_owned(),
            index,
            reader,
            fields,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many passages it holds.
    pub(super) fn count(&self) -> Result<u64, TantivyError> {
        self.reader.reload()?;
        Ok(self.reader.searcher().num_docs())
    }

    pub(super) fn writer(&self) -> Result<KeywordsWriter, TantivyError> {
        let writer = self.index.writer_with_num_threads(1, WRITER_BYTES)?;
        Ok(KeywordsWriter {
            writer,
            fields: self.fields,
        })
    }

    /// The passages with the question's terms, best first; of these documents only, where some are named.
    pub(super) fn search(
        &self,
        question: &str,
        documents: Option<&[DocumentId]>,
        limit: usize,
    ) -> Result<Vec<(PassageId, f32)>, TantivyError> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        terms::analyzer().token_stream(question).process(&mut |token| {
            if !seen.insert(token.text.clone()) {
                return;
            }
            for (field, weight) in [(self.fields.text, 1.0), (self.fields.title, TITLE_WEIGHT)] {
                let term = TermQuery::new(
                    Term::from_field_text(field, &token.text),
                    IndexRecordOption::WithFreqs,
                );
                clauses.push((Occur::Should, Box::new(BoostQuery::new(Box::new(term), weight))));
            }
        });
        if clauses.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let mut query: Box<dyn Query> = Box::new(BooleanQuery::new(clauses));
        if let Some(documents) = documents {
            let terms = documents
                .iter()
                .map(|id| Term::from_field_i64(self.fields.document, id.0));
            let within = ConstScoreQuery::new(Box::new(TermSetQuery::new(terms)), 0.0);
            query = Box::new(BooleanQuery::new(vec![
                (Occur::Must, query),
                (Occur::Must, Box::new(within)),
            ]));
        }
        self.reader.reload()?;
        let searcher = self.reader.searcher();
        let most = usize::try_from(searcher.num_docs()).unwrap_or(usize::MAX).max(1);
        let found = searcher.search(&query, &TopDocs::with_limit(limit.min(most)).order_by_score())?;
        let mut passages = Vec::with_capacity(found.len());
        for (score, address) in found {
            let ids = searcher
                .segment_reader(address.segment_ord)
                .fast_fields()
                .i64("passage")?;
            if let Some(id) = ids.first(address.doc_id) {
                passages.push((PassageId(id), score));
            }
        }
        Ok(passages)
    }
}

impl KeywordsWriter {
    /// Puts these passages in the place of all that a document had.
    pub(super) fn replace(
        &self,
        document: DocumentId,
        passages: &[StoredPassage],
    ) -> Result<(), TantivyError> {
        self.erase(document);
        for stored in passages {
            let mut entry = TantivyDocument::default();
            entry.add_i64(self.fields.passage, stored.id.0);
            entry.add_i64(self.fields.document, document.0);
            entry.add_text(self.fields.text, &stored.passage.text);
            for heading in &stored.passage.headings {
                entry.add_text(self.fields.title, heading);
            }
            entry.add_text(self.fields.title, &stored.passage.document);
            self.writer.add_document(entry)?;
        }
        Ok(())
    }

    pub(super) fn erase(&self, document: DocumentId) {
        self.writer
            .delete_term(Term::from_field_i64(self.fields.document, document.0));
    }

    pub(super) fn commit(&mut self) -> Result<(), TantivyError> {
        self.writer.commit().map(|_| ())
    }

    /// Writes those parts anew that still have bytes of what was erased.
    pub(super) fn purge(&mut self, keywords: &Keywords) -> Result<(), TantivyError> {
        let segments = self.writer.index().searchable_segment_metas()?;
        let stale: Vec<_> = segments
            .iter()
            .filter(|one| one.has_deletes())
            .map(|one| one.id())
            .collect();
        // Whoever holds one of these keeps its files.
        drop(segments);
        if !stale.is_empty() {
            self.writer.merge(&stale).wait()?;
        }
        keywords.reader.reload()?;
        self.writer.garbage_collect_files().wait()?;
        Ok(())
    }

    /// Ends it in order.
    pub(super) fn close(self) -> Result<(), TantivyError> {
        self.writer.wait_merging_threads()
    }
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqs);
    let text = TextOptions::default().set_indexing_options(indexing);
    let fields = Fields {
        passage: schema.add_i64_field("passage", FAST),
        document: schema.add_i64_field("document", INDEXED),
        text: schema.add_text_field("text", text.clone()),
        title: schema.add_text_field("title", text),
    };
    (schema.build(), fields)
}

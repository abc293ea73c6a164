//! Chooses the passages for a question: by keywords (BM25), as many as fit the budget, in the order of the documents.

use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::indexer::SingleSegmentIndexWriter;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{Index, TantivyDocument, Term};

use crate::error::LibraryError;
use crate::passage::Passage;
use crate::{TokenCounter, terms};

/// Working memory of the index while it is built.
const INDEX_BYTES: usize = 32 << 20;
/// Passages that score less than this share of the best one share only common words with the question; they would
/// distract the model.
const LEAST_SCORE_SHARE: f32 = 0.25;
const ANALYZER: &str = "terms";

/// The passages chosen for a question.
#[derive(Debug, Clone)]
pub struct Selection {
    used: Vec<Passage>,
    available: usize,
    matched: bool,
    tokens: usize,
}

impl Selection {
    /// The chosen passages, in the order of the documents.
    pub fn used(&self) -> &[Passage] {
        &self.used
    }
    /// Tokens of the chosen passages.
    pub fn tokens(&self) -> usize {
        self.tokens
    }
    /// How many passages there were to choose from.
    pub fn available(&self) -> usize {
        self.available
    }
    /// Whether everything fitted.
    pub fn is_everything(&self) -> bool {
        self.used.len() == self.available
    }
    /// Whether the question shares a word with the documents. When it does not, the passages are the documents'
    /// beginnings.
    pub fn matched(&self) -> bool {
        self.matched
    }
}

/// Chooses passages for a question within a budget. Documents that fit are used whole.
pub fn select(
    question: &str,
    passages: &[Passage],
    budget_tokens: usize,
    count: TokenCounter<'_>,
) -> Result<Selection, LibraryError> {
    let all_tokens: usize = passages.iter().map(|passage| passage.tokens).sum();
    if all_tokens <= budget_tokens {
        let used = passages.to_vec();
        return Ok(Selection {
            used,
            available: passages.len(),
            matched: true,
            tokens: all_tokens,
        });
    }
    let mut ranked = rank(question, passages)?;
    let matched = !ranked.is_empty();
    if !matched {
        ranked = (0..passages.len()).collect();
    }
    let best = ranked.first().copied();
    let mut chosen = Vec::new();
    let mut left = budget_tokens;
    for index in ranked {
        if passages[index].tokens <= left {
            left -= passages[index].tokens;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    let mut used: Vec<Passage> = chosen.into_iter().map(|index| passages[index].clone()).collect();
    if used.is_empty()
        && let Some(best) = best
    {
        // Not even one passage fits: the start of the best one is better than nothing.
        used.extend(shortened(&passages[best], budget_tokens, count));
    }
    let tokens = used.iter().map(|passage| passage.tokens).sum();
    Ok(Selection {
        used,
        available: passages.len(),
        matched,
        tokens,
    })
}

/// Indices of the passages that answer to the question's terms, best first, by keywords (BM25).
///
/// # Errors
/// When the index cannot be built in memory.
pub fn rank(question: &str, passages: &[Passage]) -> Result<Vec<usize>, LibraryError> {
    let texts: Vec<Vec<&str>> = passages
        .iter()
        .map(|passage| {
            let headings = passage.headings.iter().map(String::as_str);
            std::iter::once(passage.text.as_str()).chain(headings).collect()
        })
        .collect();
    rank_texts(question, &texts)
}

/// As [`rank`], of texts in parts.
pub(crate) fn rank_texts(question: &str, texts: &[Vec<&str>]) -> Result<Vec<usize>, LibraryError> {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqs);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let analyzers = TokenizerManager::new();
    analyzers.register(ANALYZER, terms::analyzer());
    // One segment, written by this thread: a document's number is its passage's index.
    let mut writer: SingleSegmentIndexWriter<TantivyDocument> = Index::builder()
        .schema(schema.build())
        .tokenizers(analyzers)
        .single_segment_index_writer(RamDirectory::create(), INDEX_BYTES)?;
    for parts in texts {
        let mut entry = TantivyDocument::default();
        for part in parts {
            entry.add_text(text, part);
        }
        writer.add_document(entry)?;
    }
    let index = writer.finalize()?;

    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    terms::analyzer().token_stream(question).process(&mut |token| {
        let term = Term::from_field_text(text, &token.text);
        clauses.push((
            Occur::Should,
            Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
        ));
    });
    if clauses.is_empty() || texts.is_empty() {
        return Ok(Vec::new());
    }
    let searcher = index.reader()?.searcher();
    let collector = TopDocs::with_limit(texts.len()).order_by_score();
    let found = searcher.search(&BooleanQuery::new(clauses), &collector)?;
    let least = found.first().map_or(0.0, |(best, _)| best * LEAST_SCORE_SHARE);
    let ranked = found.into_iter().take_while(|(score, _)| *score >= least);
    Ok(ranked.map(|(_, address)| address.doc_id as usize).collect())
}

/// The start of a passage, cut between words so that it fits.
fn shortened(passage: &Passage, budget_tokens: usize, count: TokenCounter<'_>) -> Option<Passage> {
    let ends: Vec<usize> = passage
        .text
        .char_indices()
        .filter(|(_, c)| c.is_whitespace())
        .map(|(at, _)| at)
        .collect();
    let cut = |end: usize| {
        let mut start = Passage {
            range: passage.range.start..passage.range.start + end,
            text: format!("{} ...", &passage.text[..end]),
            ..passage.clone()
        };
        start.tokens = count(&start.rendered());
        start
    };
    // More words never cost fewer tokens, so the longest start that fits is found by halving.
    let fitting = ends.partition_point(|&end| cut(end).tokens <= budget_tokens);
    fitting.checked_sub(1).map(|last| cut(ends[last]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::passage::split;
    use crate::place::Place;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn passages(texts: &[&str]) -> Vec<Passage> {
        let passage = |(index, text): (usize, &&str)| {
            let place = Place::Pages {
                first: index + 1,
                last: index + 1,
            };
            let mut passage = Passage {
                document: "a.pdf".into(),
                path: "a.pdf".into(),
                place,
                headings: Vec::new(),
                range: 0..text.len(),
                text: (*text).into(),
                is_ocr: false,
                tokens: 0,
            };
            passage.tokens = words(&passage.rendered());
            passage
        };
        texts.iter().enumerate().map(passage).collect()
    }

    fn chosen(question: &str, passages: &[Passage], budget: usize) -> Vec<String> {
        let selection = select(question, passages, budget, &words).unwrap();
        assert!(selection.tokens() <= budget);
        selection
            .used()
            .iter()
            .map(|passage| passage.place.to_string())
            .collect()
    }

    #[test]
    fn what_fits_is_used_whole() {
        let all = passages(&["alpha", "beta"]);
        let selection = select("gamma", &all, 100, &words).unwrap();
        assert!(selection.is_everything());
        assert_eq!(selection.tokens(), 8);
    }

    #[test]
    fn the_best_passages_are_kept_in_document_order() {
        let all = passages(&[
            "the cat sleeps here",
            "dogs bark loudly now",
            "a cat and a dog",
            "fish swim about silently",
        ]);
        assert_eq!(chosen("Do cats like dogs?", &all, 15), ["page 1", "page 3"]);
        assert_eq!(chosen("fishes", &all, 7), ["page 4"]);
    }

    #[test]
    fn a_question_in_japanese_or_chinese_finds_its_passage() {
        let all = passages(&[
            "犬は庭で遊びます。",
            "東京都の人口は多いです。",
            "猫は家で寝ます。",
        ]);
        assert_eq!(chosen("東京の人口は?", &all, 5), ["page 2"]);
        let all = passages(&["我喜欢吃苹果。", "北京是中国的首都。", "今天天气很好。"]);
        assert_eq!(chosen("中国首都在哪里?", &all, 5), ["page 2"]);
    }

    #[test]
    fn a_question_that_matches_nothing_gets_the_beginning_and_says_so() {
        let all = passages(&["one two", "three four", "five six"]);
        let selection = select("What is this about?", &all, 11, &words).unwrap();
        assert!(!selection.matched());
        assert_eq!(selection.used()[0].place, all[0].place);
    }

    #[test]
    fn a_budget_below_one_passage_gets_the_start_of_the_best() {
        let all = passages(&[
            "one two three",
            "the answer is forty two and some more words follow here",
        ]);
        let selection = select("answer", &all, 8, &words).unwrap();
        assert_eq!(selection.used()[0].text, "the answer is forty ...");
        assert!(select("answer", &all, 0, &words).unwrap().used().is_empty());
    }

    #[test]
    fn headings_count_as_text_of_their_passages() {
        let text = "# Boiler\n\nheat it up slowly and carefully always\n\nturn the left valve first and then the right one\n\n\
            # Garden\n\nwater it\n";
        let document = Document::from_bytes("a.md", text.as_bytes()).unwrap();
        let all = split(&document, 12, &words);
        let selection = select("boilers", &all, 30, &words).unwrap();
        assert!(
            selection
                .used()
                .iter()
                .any(|passage| passage.text.contains("valve"))
        );
    }
}

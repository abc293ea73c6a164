//! A worker that has read a workload's texts, and is asked about them.

use std::collections::BTreeSet;
use std::sync::Arc;

use reprise_engine::snapshot::TiersView;
use reprise_engine::store::Stats;
use reprise_engine::worker::Worker;
use reprise_engine::{
    Answer, EngineError, GenerateOptions, LoadOptions, Reuse, SamplingOptions, Script, Segment, SegmentKind,
    TokenId,
};
use reprise_model::template::{ChatTemplate, Owner, PartedMessage, Role, TemplateOptions};

use super::load::{Request, TextKind, Workload};
use super::method::Method;
use super::outcomes::Outcomes;
use super::score::likeliest;
use super::server::LlamaServer;
use super::system::{self, FileCache};
use super::{Setup, WorkloadArguments};
use crate::failure::{Failure, Outcome};
use crate::output::StatusLine;

/// See the module.
pub struct Bench<'a> {
    pub worker: Worker,
    template: ChatTemplate,
    workload: &'a Workload,
    arguments: &'a WorkloadArguments,
}

/// A prompt.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    pub tokens: Vec<TokenId>,
    pub segments: Vec<Segment>,
}

/// Whether a request leaves anything behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// What it read is stored.
    Chunks,
    /// Nothing, so that no later one profits from it.
    Nothing,
}

/// An answer of ours, and what it took.
#[derive(Debug)]
pub struct Asked {
    pub answer: Answer,
    pub cpu_seconds: Option<f64>,
    pub read_bytes: Option<u64>,
    pub memory_hits: usize,
    pub flash_hits: usize,
}

impl<'a> Bench<'a> {
    /// Loads a worker.
    pub fn load(setup: &'a Setup<'_>, workload: &'a Workload, options: &LoadOptions) -> Outcome<Bench<'a>> {
        let worker = Worker::load(&setup.model, options)?;
        if let Some(fault) = worker.store_fault() {
            return Err(Failure::message(format!("nothing can be stored: {fault}")));
        }
        Ok(Bench {
            template: ChatTemplate::from_gguf(&setup.gguf, worker.tokenizer()),
            worker,
            workload,
            arguments: setup.arguments,
        })
    }

    /// A prompt with some texts and perhaps a question.
    pub fn prompt(&self, texts: &[usize], question: Option<&str>) -> Outcome<Prompt> {
        let rendered = texts.iter().map(|&text| &self.workload.texts[text]);
        let parts: Vec<(&str, Option<(TextKind, usize)>)> = rendered
            .zip(texts)
            .map(|(text, &index)| (text.rendered.as_str(), Some((text.kind, index))))
            .chain(question.map(|question| (question, None)))
            .collect();
        self.prompt_of(&parts)
    }

    /// A prompt of parts; those of texts with what they are.
    fn prompt_of(&self, parts: &[(&str, Option<(TextKind, usize)>)]) -> Outcome<Prompt> {
        let owner = |kind: &str, name: String| {
            reprise_engine::Owner::new(kind, name)
                .map(Some)
                .map_err(|error| Failure::message(error.to_string()))
        };
        let texts: Vec<&str> = parts.iter().map(|part| part.0).collect();
        let system = [self.workload.system];
        let messages = [
            PartedMessage {
                role: Role::System,
                parts: &system,
            },
            PartedMessage {
                role: Role::User,
                parts: &texts,
            },
        ];
        let stretches = self
            .template
            .encode_parts(self.worker.tokenizer(), &messages, &TemplateOptions::ask())
            .map_err(|error| Failure::message(error.to_string()))?;
        let mut prompt = Prompt::default();
        for stretch in stretches {
            let (kind, owner) = match stretch.owner {
                Owner::Part { message: 1, part } => match parts[part].1 {
                    Some((TextKind::Passage, text)) => {
                        (SegmentKind::Passage, owner("document", text.to_string())?)
                    }
                    Some((TextKind::Skill, text)) => (SegmentKind::Skill, owner("skill", text.to_string())?),
                    None => (SegmentKind::Question, owner("chat", "1".into())?),
                },
                Owner::Part { .. } | Owner::Template => (SegmentKind::Turn, owner("chat", "1".into())?),
            };
            prompt.segments.push(Segment {
                kind,
                owner,
                tokens: stretch.ids.len(),
            });
            prompt.tokens.extend(stretch.ids);
        }
        Ok(prompt)
    }

    /// Reads every text that is asked about, alone behind the system message; so does the other side.
    pub fn read_texts(&mut self, server: Option<&LlamaServer>) -> Outcome {
        let wanted: BTreeSet<usize> = self
            .workload
            .requests
            .iter()
            .flat_map(|request| request.texts.iter().copied())
            .collect();
        let mut status = StatusLine::new(false);
        for (done, &text) in wanted.iter().enumerate() {
            status.show(&format!(
                "{}: reading text {} of {}",
                self.workload.name,
                done + 1,
                wanted.len()
            ));
            let mut prompt = self.prompt(&[text], None)?;
            // What the template writes behind it is not wanted.
            let end = prompt
                .segments
                .iter()
                .rposition(|segment| segment.kind != SegmentKind::Turn)
                .map_or(prompt.segments.len(), |last| last + 1);
            prompt.segments.truncate(end);
            prompt
                .tokens
                .truncate(prompt.segments.iter().map(|segment| segment.tokens).sum());
            self.worker.set_reuse(Reuse::Prefix);
            self.generate(&prompt, 1, Leaves::Chunks, None)
                .map_err(|failure| about(failure, &format!("{}, text {}", self.workload.name, text + 1)))?;
            if let Some(server) = server {
                server.ask(&prompt.tokens, 1)?;
            }
        }
        if let Some(keeper) = self.worker.keeper() {
            keeper.flush();
        }
        Ok(())
    }

    /// What is stored.
    pub fn stored(&self) -> Outcome<Option<Stats>> {
        let stats = self.worker.keeper().map(|keeper| keeper.store().stats());
        Ok(stats.transpose().map_err(EngineError::from)?)
    }

    fn tiers(&self) -> TiersView {
        self.worker
            .keeper()
            .map(|keeper| keeper.tiers())
            .unwrap_or_default()
    }

    /// One request, as the worker is set.
    pub fn generate(
        &mut self,
        prompt: &Prompt,
        most: usize,
        leaves: Leaves,
        script: Option<Arc<Script>>,
    ) -> Outcome<Asked> {
        let options = GenerateOptions {
            sampling: SamplingOptions::greedy(),
            max_tokens: most,
            scratch: leaves == Leaves::Nothing,
            segments: prompt.segments.clone(),
            script,
            ..GenerateOptions::default()
        };
        let (tiers, cpu, read) = (self.tiers(), system::cpu_seconds(), system::read_bytes());
        let answer = self.worker.generate(&prompt.tokens, &options)?;
        let (cpu_now, read_now, tiers_now) = (system::cpu_seconds(), system::read_bytes(), self.tiers());
        Ok(Asked {
            answer,
            cpu_seconds: cpu_now.zip(cpu).map(|(now, before)| now - before),
            read_bytes: read_now.zip(read).map(|(now, before)| now.saturating_sub(before)),
            memory_hits: tiers_now.memory.hits.saturating_sub(tiers.memory.hits),
            flash_hits: tiers_now.flash.hits.saturating_sub(tiers.flash.hits),
        })
    }

    /// Asks with a method, with nothing left in the pool.
    fn ask(&mut self, prompt: &Prompt, method: &Method, script: Option<Arc<Script>>) -> Outcome<Asked> {
        self.worker.set_reuse(method.reuse);
        self.worker.set_workings(method.workings);
        self.worker.forget();
        self.generate(prompt, self.arguments.generate, Leaves::Nothing, script)
    }

    /// Asks every question with every method, and then the other side. `folder` is where chunks are.
    pub fn ask_all(
        &mut self,
        methods: &[Method],
        server: Option<&LlamaServer>,
        folder: &std::path::Path,
    ) -> Outcome<(Vec<Outcomes>, Option<Outcomes>)> {
        let mut results: Vec<Outcomes> = methods.iter().map(|_| Outcomes::default()).collect();
        let mut theirs = server.map(|_| Outcomes::default());
        let mut status = StatusLine::new(false);
        let count = self.workload.requests.len();
        for (done, request) in self.workload.requests.iter().enumerate() {
            status.show(&format!(
                "{}: question {} of {count}",
                self.workload.name,
                done + 1
            ));
            self.ask_one(request, methods, &mut results, folder)
                .map_err(|failure| {
                    about(failure, &format!("{}, question {}", self.workload.name, done + 1))
                })?;
            if let (Some(server), Some(theirs)) = (server, &mut theirs) {
                let prompt = self.prompt(&request.texts, Some(&request.question))?;
                let reply = server.ask(&prompt.tokens, self.arguments.generate)?;
                theirs.judge(&reply.text, &request.answers);
                theirs.add_reply(&reply, prompt.tokens.len());
            }
        }
        Ok((results, theirs))
    }

    fn ask_one(
        &mut self,
        request: &Request,
        methods: &[Method],
        results: &mut [Outcomes],
        folder: &std::path::Path,
    ) -> Outcome {
        let prompt = self.prompt(&request.texts, Some(&request.question))?;
        // The answer without any reuse, token by token, is what the others are held against.
        let watch = Script::watch();
        let plain = self.ask(&prompt, &Method::none(), Some(watch.clone()))?;
        let mut reference = watch.take_logits();
        reference.truncate(plain.answer.answer_tokens.max(1));
        let said: Vec<TokenId> = reference.iter().map(|logits| likeliest(logits)).collect();
        for (method, result) in methods.iter().zip(results) {
            if self.arguments.cold {
                result.file_cache(system::drop_file_cache(folder));
            }
            let watch = Script::watch();
            let asked = self.ask(&prompt, method, Some(watch.clone()))?;
            let mut seen = watch.take_logits();
            seen.truncate(asked.answer.answer_tokens.max(1));
            // An answer of other words has other contexts: then the reference's words are dictated.
            if !seen
                .iter()
                .map(|logits| likeliest(logits))
                .eq(said.iter().copied())
            {
                let dictation = Script::dictate(said.clone());
                self.ask(&prompt, method, Some(dictation.clone()))?;
                seen = dictation.take_logits();
            }
            for (reference, logits) in reference.iter().zip(&seen) {
                result.compare(logits, reference);
            }
            result.judge(&asked.answer.text, &request.answers);
            result.add(&asked);
        }
        Ok(())
    }

    /// A prompt of about `most` tokens that begins with the workload's texts, and ends with a question; with the whole of
    /// their tokens where they are too few.
    pub fn long_prompt(&self, most: usize, question: &str) -> Outcome<Result<Prompt, usize>> {
        let texts = &self.workload.texts;
        let with = |whole: usize, piece: &str| {
            let mut parts: Vec<_> = texts[..whole]
                .iter()
                .enumerate()
                .map(|(index, text)| (text.rendered.as_str(), Some((text.kind, index))))
                .collect();
            if !piece.is_empty() {
                parts.push((piece, Some((texts[whole].kind, whole))));
            }
            parts.push((question, None));
            self.prompt_of(&parts)
        };
        // Whole texts first; parts are tokenised on their own, so that each adds its own tokens.
        let fits = |prompt: &Prompt| prompt.tokens.len() <= most;
        let (mut low, mut high) = (0, texts.len());
        while low < high {
            let middle = (low + high).div_ceil(2);
            match fits(&with(middle, "")?) {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        let whole = low;
        let Some(next) = texts.get(whole) else {
            let all = with(whole, "")?;
            return Ok(match all.tokens.len() == most {
                true => Ok(all),
                false => Err(all.tokens.len()),
            });
        };
        // Then words of the next one.
        let ends: Vec<usize> = next.rendered.match_indices(' ').map(|(at, _)| at).collect();
        let (mut low, mut high) = (0, ends.len());
        while low < high {
            let middle = (low + high).div_ceil(2);
            match fits(&with(whole, &next.rendered[..ends[middle - 1]])?) {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        let piece = match low {
            0 => "",
            words => &next.rendered[..ends[words - 1]],
        };
        Ok(Ok(with(whole, piece)?))
    }
}

/// A failure with what it is about.
fn about(failure: Failure, what: &str) -> Failure {
    match failure {
        Failure::Message(text) => Failure::Message(format!("{what}: {text}")),
        other => other,
    }
}

/// What came of several attempts to empty the file cache: what is true of all of them.
pub fn of_all(before: Option<FileCache>, now: FileCache) -> FileCache {
    match before {
        Some(before) if before != now => FileCache::Unknown,
        _ => now,
    }
}

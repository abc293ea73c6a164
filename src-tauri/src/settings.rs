//! What the person chose: defaults, bounds, and what the engine makes of it.

use reprise_engine::{
    GenerateOptions, KvChoice, KvFormat, LoadOptions, Recompute, Reuse, SamplingOptions, Speculation,
    StoreChoice,
};
use reprise_library::assistant::{CHAT_REPETITION_PENALTY, CHAT_TEMPERATURE};
use reprise_library::converse::{ANSWER_TOKENS, Instructions};
use reprise_library::folders;

use crate::types::{Failure, KvStorage, Language, ReuseChoice, Settings, Theme};

const TOP_K: usize = 40;
const MIN_P: f32 = 0.05;
const REPETITION_WINDOW_TOKENS: usize = 64;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            theme: Theme::System,
            language: Language::System,
            system_prompt: String::new(),
            model: None,
            context_tokens: None,
            threads: None,
            kv_storage: KvStorage::Profile,
            kv_budget_megabytes: None,
            memory_limit_megabytes: None,
            reuse: ReuseChoice::Anywhere,
            recompute_ratio: Recompute::default().ratio,
            disk_budget_megabytes: None,
            read_ahead: true,
            tools: false,
            speculation: true,
            temperature: CHAT_TEMPERATURE,
            top_p: 0.95,
            repetition_penalty: CHAT_REPETITION_PENALTY,
            max_answer_tokens: ANSWER_TOKENS,
            sidebar_open: true,
            panel_open: true,
        }
    }
}

impl Settings {
    /// Refuses what cannot be. The page checks the same bounds while they are typed (`ui/src/lib/settings/validate.ts`).
    ///
    /// # Errors
    /// A sentence that names the setting and its bounds.
    pub fn check(&self) -> Result<(), Failure> {
        let most_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let bounds: [(&str, bool, String); 11] = [
            (
                "temperature",
                (0.0..=10.0).contains(&self.temperature),
                "from 0 to 10".into(),
            ),
            (
                "top p",
                self.top_p > 0.0 && self.top_p <= 1.0,
                "above 0 and at most 1".into(),
            ),
            (
                "repetition penalty",
                self.repetition_penalty > 0.0 && self.repetition_penalty <= 10.0,
                "above 0 and at most 10".into(),
            ),
            (
                "most tokens of an answer",
                (1..=1_048_576).contains(&self.max_answer_tokens),
                "from 1 to 1,048,576".into(),
            ),
            (
                "window",
                self.context_tokens
                    .is_none_or(|tokens| (256..=1_048_576).contains(&tokens)),
                "from 256 to what the model was trained for".into(),
            ),
            (
                "threads",
                self.threads
                    .is_none_or(|threads| (1..=most_threads).contains(&threads)),
                format!("from 1 to {most_threads} on this machine"),
            ),
            (
                "memory for context",
                self.kv_budget_megabytes
                    .is_none_or(|megabytes| (16..=1_048_576).contains(&megabytes)),
                "from 16 to 1,048,576 MB".into(),
            ),
            (
                "memory limit",
                self.memory_limit_megabytes
                    .is_none_or(|megabytes| (256..=1_048_576).contains(&megabytes)),
                "from 256 to 1,048,576 MB".into(),
            ),
            (
                "share that is computed again",
                (0.0..=1.0).contains(&self.recompute_ratio),
                "from 0 to 1".into(),
            ),
            (
                "disk for what was read",
                self.disk_budget_megabytes
                    .is_none_or(|megabytes| megabytes == 0 || (100..=10_000_000).contains(&megabytes)),
                "0, or from 100 to 10,000,000 MB".into(),
            ),
            (
                "system prompt",
                self.system_prompt.len() <= 100_000,
                "of at most 100,000 bytes".into(),
            ),
        ];
        match bounds.iter().find(|(_, is_good, _)| !is_good) {
            None => Ok(()),
            Some((name, _, range)) => Err(Failure::new(format!("the {name} must be {range}"))),
        }
    }

    /// Whether the model has to be loaded anew when these take the place of `earlier`.
    pub fn changes_model(&self, earlier: &Settings) -> bool {
        let of_loading = |settings: &Settings| {
            (
                settings.model.clone(),
                settings.context_tokens,
                settings.threads,
                settings.kv_storage,
                settings.kv_budget_megabytes,
                settings.memory_limit_megabytes,
                settings.disk_budget_megabytes,
                settings.speculation,
            )
        };
        of_loading(self) != of_loading(earlier)
    }

    /// How the model is loaded.
    pub fn load_options(&self) -> LoadOptions {
        LoadOptions {
            threads: self.threads,
            context_tokens: self.context_tokens,
            kv: match self.kv_storage {
                KvStorage::Profile => KvChoice::Profile,
                KvStorage::F16 => uniform(KvFormat::F16),
                KvStorage::Q8 => uniform(KvFormat::Q8),
                KvStorage::Tq4 => uniform(KvFormat::Tq4),
            },
            kv_budget_bytes: self.kv_budget_megabytes.map(bytes),
            memory_limit_bytes: self.memory_limit_megabytes.map(bytes),
            speculation: if self.speculation {
                Speculation::PromptLookup
            } else {
                Speculation::Off
            },
            reuse: self.reuse(),
            ..LoadOptions::default()
        }
    }

    /// What of earlier prompts is used again.
    pub fn reuse(&self) -> Reuse {
        match self.reuse {
            ReuseChoice::Anywhere => Reuse::Anywhere(Recompute {
                ratio: self.recompute_ratio,
                // What a person chose is meant.
                is_bounded: self.recompute_ratio == Recompute::default().ratio,
                ..Recompute::default()
            }),
            ReuseChoice::Prefix => Reuse::Prefix,
            ReuseChoice::Nothing => Reuse::Nothing,
        }
    }

    /// Where what is read is kept; nowhere when the person wants none of it.
    pub fn store(&self) -> Option<StoreChoice> {
        folders::store(self.disk_budget_megabytes.map(bytes))
    }

    /// How answers are made.
    pub fn instructions(&self) -> Instructions {
        Instructions {
            system: self.system_prompt.clone(),
            options: GenerateOptions {
                sampling: SamplingOptions {
                    temperature: self.temperature,
                    top_k: TOP_K,
                    top_p: self.top_p,
                    min_p: MIN_P,
                    repetition_penalty: self.repetition_penalty,
                    repetition_window: REPETITION_WINDOW_TOKENS,
                    seed: None,
                },
                max_tokens: self.max_answer_tokens,
                stop: Vec::new(),
                stop_when_repeating: true,
                ..GenerateOptions::default()
            },
            tools_tokens: 0,
        }
    }
}

/// So many millions of bytes.
fn bytes(megabytes: u64) -> u64 {
    megabytes.saturating_mul(1_000_000)
}

/// Keys and values in the same format.
fn uniform(format: KvFormat) -> KvChoice {
    KvChoice::Uniform {
        keys: format,
        values: format,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_good_and_bad_values_are_named() {
        assert!(Settings::default().check().is_ok());
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap_err().message
        };
        assert!(refused(|settings| settings.temperature = f32::NAN).contains("temperature"));
        assert!(refused(|settings| settings.top_p = 0.0).contains("top p"));
        assert!(refused(|settings| settings.threads = Some(100_000)).contains("threads"));
        assert!(refused(|settings| settings.context_tokens = Some(3)).contains("window"));
        assert!(refused(|settings| settings.max_answer_tokens = 0).contains("answer"));
        assert!(refused(|settings| settings.kv_budget_megabytes = Some(1)).contains("memory for context"));
        assert!(refused(|settings| settings.recompute_ratio = 1.5).contains("computed again"));
        assert!(refused(|settings| settings.disk_budget_megabytes = Some(1)).contains("disk"));
        assert!(
            refused(|settings| settings.memory_limit_megabytes = Some(u64::MAX)).contains("memory limit")
        );
    }

    #[test]
    fn settings_of_an_older_program_are_read_and_the_rest_is_default() {
        let settings: Settings = serde_json::from_str(r#"{"temperature":0.2,"gone":1}"#).unwrap();
        assert_eq!(
            settings,
            Settings {
                temperature: 0.2,
                ..Settings::default()
            }
        );
    }

    #[test]
    fn only_what_concerns_loading_loads_the_model_anew() {
        let settings = Settings::default();
        let warmer = Settings {
            temperature: 1.0,
            ..settings.clone()
        };
        let wider = Settings {
            context_tokens: Some(2048),
            ..settings.clone()
        };
        let exact = Settings {
            reuse: ReuseChoice::Prefix,
            recompute_ratio: 0.5,
            ..settings.clone()
        };
        assert!(!warmer.changes_model(&settings) && !exact.changes_model(&settings));
        assert!(wider.changes_model(&settings));
        let changes: [fn(&mut Settings); 5] = [
            |settings| settings.kv_storage = KvStorage::Q8,
            |settings| settings.kv_budget_megabytes = Some(100),
            |settings| settings.memory_limit_megabytes = Some(4_000),
            |settings| settings.speculation = false,
            |settings| settings.disk_budget_megabytes = Some(0),
        ];
        for change in changes {
            let mut changed = settings.clone();
            change(&mut changed);
            assert!(changed.changes_model(&settings), "{changed:?}");
        }
    }

    #[test]
    fn what_is_chosen_is_what_the_model_is_loaded_with() {
        let automatic = Settings::default().load_options();
        assert_eq!(automatic.kv, KvChoice::Profile);
        assert_eq!(
            (automatic.kv_budget_bytes, automatic.memory_limit_bytes),
            (None, None)
        );
        let chosen = Settings {
            kv_storage: KvStorage::Q8,
            kv_budget_megabytes: Some(100),
            memory_limit_megabytes: Some(4_000),
            speculation: false,
            ..Settings::default()
        };
        let options = chosen.load_options();
        assert_eq!(options.kv, uniform(KvFormat::Q8));
        assert_eq!(
            (options.kv_budget_bytes, options.memory_limit_bytes),
            (Some(100_000_000), Some(4_000_000_000))
        );
        assert_eq!(options.speculation, Speculation::Off);
        assert_eq!(options.reuse, Reuse::default());
        let chosen = Settings {
            reuse: ReuseChoice::Prefix,
            disk_budget_megabytes: Some(0),
            ..Settings::default()
        };
        assert_eq!(
            (chosen.load_options().reuse, chosen.store()),
            (Reuse::Prefix, None)
        );
    }
}

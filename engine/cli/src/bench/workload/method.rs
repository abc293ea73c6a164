//! What can be measured: ways to use earlier prompts again, and the program without one of its parts.

use std::str::FromStr;

use reprise_engine::backend::Deviation;
use reprise_engine::{KvChoice, KvFormat, LoadOptions, Recompute, Reuse, Strategy, Workings};

/// The program's own way.
pub const REPRISE: &str = "reprise";

/// What is used again.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    pub name: String,
    pub reuse: Reuse,
    pub workings: Workings,
}

impl Method {
    /// Nothing is used again.
    pub fn none() -> Method {
        Method {
            name: "none".into(),
            reuse: Reuse::Nothing,
            workings: Workings::default(),
        }
    }

    /// The program's own way.
    pub fn reprise() -> Method {
        Method {
            name: REPRISE.into(),
            reuse: Reuse::default(),
            workings: Workings::default(),
        }
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Method, String> {
        let anywhere = |strategy, ratio| {
            Reuse::Anywhere(Recompute {
                strategy,
                ratio,
                is_bounded: false,
            })
        };
        let reuse = match text {
            "none" => Reuse::Nothing,
            "prefix" => Reuse::Prefix,
            "full" => anywhere(Strategy::Nothing, 0.0),
            REPRISE => Reuse::default(),
            other => {
                let (strategy, ratio) = other
                    .split_once('@')
                    .ok_or("known are none, prefix, full, reprise and STRATEGY@RATIO")?;
                let strategy = match strategy {
                    "heads+query" => Strategy::HeadsAndQuery,
                    "heads" => Strategy::Heads,
                    "keys" => Strategy::Deviation(Deviation::Keys),
                    "values" => Strategy::Deviation(Deviation::Values),
                    "both" => Strategy::Deviation(Deviation::Both),
                    _ => return Err("strategies are heads+query, heads, keys, values and both".into()),
                };
                let ratio = ratio.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                anywhere(strategy, ratio.ok_or("the ratio is a number from 0 to 1")?)
            }
        };
        Ok(Method {
            name: text.to_owned(),
            reuse,
            workings: Workings::default(),
        })
    }
}

/// The program without one of its parts.
#[derive(Debug, Clone, Copy)]
pub struct Ablation {
    /// The part that is missing.
    pub part: &'static str,
    /// What is so without it.
    pub without: &'static str,
    change: Change,
}

/// What takes a part away.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// What of earlier prompts is used again: such a row is measured by turns with the methods.
    Reuse(fn() -> Reuse),
    /// How the model is loaded: such a row has a worker of its own, which reads the texts again.
    Load(fn(&mut LoadOptions)),
    /// How prompts are read: such a row is measured by turns with the methods, too.
    Workings(fn(&mut Workings)),
}

/// Every part that can be taken away. Another one is another entry here: an option of the engine's is set in
/// `Change::Load`, one of a request's reuse in `Change::Reuse`.
const ABLATIONS: &[Ablation] = &[
    Ablation {
        part: "memory",
        without: "no memory tier: chunks come from the disk",
        change: Change::Load(|options| {
            if let Some(store) = &mut options.store {
                store.memory_bytes = Some(0);
            }
        }),
    },
    Ablation {
        part: "overlap",
        without: "computing begins when all chunks are in place",
        change: Change::Workings(|workings| workings.overlaps = false),
    },
    Ablation {
        part: "merging",
        without: "each stretch of consecutive tokens is a call of its own",
        change: Change::Workings(|workings| workings.merges = false),
    },
    Ablation {
        part: "graphs",
        without: "calls of 32 tokens",
        change: Change::Workings(|workings| workings.call_tokens = Some(32)),
    },
    Ablation {
        part: "packing",
        without: "keys and values in 16 bits",
        change: Change::Load(|options| {
            options.kv = KvChoice::Uniform {
                keys: KvFormat::F16,
                values: KvFormat::F16,
            };
        }),
    },
    Ablation {
        part: "anywhere",
        without: "only what begins alike is used again",
        change: Change::Reuse(|| Reuse::Prefix),
    },
    Ablation {
        part: "index",
        without: "nothing stored is found",
        change: Change::Reuse(|| Reuse::Nothing),
    },
    Ablation {
        part: "recompute",
        without: "nothing that moved is computed again",
        change: Change::Reuse(|| {
            Reuse::Anywhere(Recompute {
                strategy: Strategy::Nothing,
                ratio: 0.0,
                is_bounded: false,
            })
        }),
    },
    Ablation {
        part: "query",
        without: "what is computed again is chosen without the question",
        change: Change::Reuse(|| {
            Reuse::Anywhere(Recompute {
                strategy: Strategy::Heads,
                ..Recompute::default()
            })
        }),
    },
];

impl Ablation {
    /// All of them, each with what is so without it: for the manual.
    pub fn manual() -> String {
        let all = ABLATIONS.iter();
        all.map(|one| format!("\n  {:10} {}", one.part, one.without))
            .collect()
    }

    /// As a row's name.
    pub fn name(&self) -> String {
        format!("without {}", self.part)
    }

    /// The method, on a worker loaded with [`Ablation::load_options`].
    pub fn method(&self) -> Method {
        let mut method = Method {
            name: self.name(),
            ..Method::reprise()
        };
        match self.change {
            Change::Reuse(reuse) => method.reuse = reuse(),
            Change::Workings(change) => change(&mut method.workings),
            Change::Load(_) => {}
        }
        method
    }

    /// How the worker is loaded, where it is not as for the methods.
    pub fn load_options(&self, usual: &LoadOptions) -> Option<LoadOptions> {
        match self.change {
            Change::Reuse(_) | Change::Workings(_) => None,
            Change::Load(change) => {
                let mut options = usual.clone();
                change(&mut options);
                Some(options)
            }
        }
    }
}

impl FromStr for Ablation {
    type Err = String;

    fn from_str(text: &str) -> Result<Ablation, String> {
        let known = || {
            ABLATIONS
                .iter()
                .map(|one| one.part)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let found = ABLATIONS.iter().find(|one| one.part == text).copied();
        found.ok_or_else(|| format!("parts are {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use reprise_engine::StoreChoice;

    use super::*;

    #[test]
    fn methods_are_known_by_name() {
        let named = |name: &str| name.parse::<Method>().map(|method| method.reuse);
        assert_eq!(named("none"), Ok(Reuse::Nothing));
        assert_eq!(named("reprise"), Ok(Reuse::default()));
        assert_eq!(
            named("values@0.25"),
            Ok(Reuse::Anywhere(Recompute {
                strategy: Strategy::Deviation(Deviation::Values),
                ratio: 0.25,
                is_bounded: false,
            }))
        );
        for wrong in ["", "nothing", "heads", "heads@2", "heads@x", "tails@0.1"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_ablation_takes_one_part_away() {
        let usual = LoadOptions {
            store: Some(StoreChoice {
                folder: "a".into(),
                budget_bytes: None,
                memory_bytes: Some(7),
            }),
            ..LoadOptions::default()
        };
        let memory: Ablation = "memory".parse().unwrap();
        let options = memory.load_options(&usual).unwrap();
        assert_eq!(options.store.unwrap().memory_bytes, Some(0));
        assert_eq!(options.kv, usual.kv);
        assert_eq!(memory.method().reuse, Reuse::default());
        let anywhere: Ablation = "anywhere".parse().unwrap();
        assert!(anywhere.load_options(&usual).is_none());
        assert_eq!(anywhere.method().reuse, Reuse::Prefix);
        let overlap = "overlap".parse::<Ablation>().unwrap();
        assert!(overlap.load_options(&usual).is_none());
        let workings = overlap.method().workings;
        assert!(!workings.overlaps && workings.merges && workings.call_tokens.is_none());
        let fault = "everything".parse::<Ablation>().unwrap_err();
        assert!(fault.contains("memory, overlap"), "{fault}");
    }
}

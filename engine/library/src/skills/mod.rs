//! Skills: folders that teach a model how to do something, by the Agent Skills convention.
//!
//! A skill is a folder with a SKILL.md: what it is for (front matter), how to do it (the body), and files beside it that
//! are read or run when they are needed. This module finds skills, reads them with suspicion, keeps what a person decided
//! about them, and lays out what a model reads of them. It trusts nothing in a skill: text is text, a path is looked up
//! among the folder's own files, and a script runs only after the person allowed it.
//!
//! ```
//! use reprise_library::skills::Skill;
//!
//! let text = "---\nname: count-words\ndescription: Counts words. Use when asked how long a text is.\n---\nCount them.\n";
//! let skill = Skill::parse(text, "count-words")?;
//! assert_eq!(skill.body, "Count them.");
//! assert!(skill.warnings.is_empty());
//! # Ok::<(), reprise_library::skills::SkillFault>(())
//! ```

mod answer;
mod bundled;
mod calls;
mod consent;
mod error;
mod files;
mod front_matter;
mod model;
pub mod run;
pub mod servers;
mod settings;
mod shelf;
mod skill;
mod summary;
mod told;
mod toolbox;

pub use answer::{Answered, Step, StepLimits, answer_with_tools};
pub use calls::{BrokenCall, CallParser, ToolCall};
pub use consent::{Consent, NobodyToAsk, Permission, Question};
pub use error::{SkillError, SkillFault};
pub use files::{FileKind, SkillFile};
pub use model::{AssistantModel, Model};
pub use settings::{Decisions, Settings};
pub use shelf::{ListedSkill, Places, Shadowed, ShelfError, SkillShelf, Source};
pub use skill::{MAX_SKILL_BYTES, SKILL_OWNER, Skill, owner_of};
pub use summary::{FileSummary, SkillSummary};
pub use told::{QuestionTold, StepTold};
pub use toolbox::{Done, Toolbox, skill_parts};

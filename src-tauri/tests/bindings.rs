//! The page's types are those of the program: `ui/src/lib/bindings.ts` is generated here, and this test fails when the
//! file is another. To write it: `REPRISE_WRITE_BINDINGS=1 cargo test -p reprise-app --test bindings`.

use std::fs;
use std::path::Path;

use reprise_app::types::{
    AnswerSources, AppEvent, Asked, Asking, Chips, ContextUse, DocumentList, DocumentShown, DocumentText,
    Failure, Fetching, IndexWork, Indexing, Kept, KvStorage, Language, ModelChoice, ModelOrigin, ModelShown,
    ModelState, PassageShown, Phase, ReuseChoice, Settings, SkillList, SkillShown, SourceShown, Start, Theme,
    UnderWay,
};
use reprise_engine::snapshot::{
    ComponentState, ComponentView, ImageView, LaneView, MemoryView, ModelView, OwnerView, PhaseView,
    PoolView, PrefetchView, Snapshot, SpeculationView, TierView, TiersView, TotalsView, TuningView,
};
use reprise_library::cache::{KeptChunk, KeptOwner};
use reprise_library::chats::{
    AnswerStats, Branch, Chat, ChatList, ChatSummary, ExportFormat, Folder, Given, Origin, Role, SearchHit,
    SnippetPart, Turn, TurnState,
};
use reprise_library::index::State as DocumentState;
use reprise_library::inspection::{
    Call, CallPurpose, Divergence, How, Inspection, PromptPart, Reason, Step, Stretch, Times, UsedChunk,
};
use reprise_library::models::fit::Fit;
use reprise_library::skills::{
    FileKind, FileSummary, Permission, QuestionTold, SkillSummary, Source, StepTold,
};
use ts_rs::{Config, TS};

const HEADER: &str = "// Generated from the program's own types; a test of reprise-app fails when this file is another.\n\
                      // To write it: REPRISE_WRITE_BINDINGS=1 cargo test -p reprise-app --test bindings\n";

/// One type's declaration with its documentation.
fn declaration<T: TS + 'static>() -> String {
    let text = format!(
        "{}export {}",
        T::docs().unwrap_or_default(),
        T::decl(&Config::default())
    );
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

macro_rules! declarations {
    ($($type:ty),* $(,)?) => { [$(declaration::<$type>()),*] };
}

#[test]
fn the_pages_types_are_up_to_date() {
    let declarations = declarations![
        Role,
        TurnState,
        AnswerStats,
        Branch,
        Turn,
        ChatSummary,
        Folder,
        ChatList,
        Chat,
        SnippetPart,
        SearchHit,
        ExportFormat,
        Theme,
        Language,
        KvStorage,
        ReuseChoice,
        Settings,
        ModelChoice,
        ModelState,
        Phase,
        AppEvent,
        UnderWay,
        Start,
        ContextUse,
        KeptOwner,
        KeptChunk,
        Kept,
        Inspection,
        Stretch,
        How,
        PromptPart,
        UsedChunk,
        Divergence,
        Reason,
        Call,
        CallPurpose,
        Times,
        Step,
        Failure,
        Snapshot,
        ModelView,
        PoolView,
        OwnerView,
        LaneView,
        PhaseView,
        ComponentView,
        ComponentState,
        MemoryView,
        TiersView,
        TierView,
        PrefetchView,
        ImageView,
        SpeculationView,
        TuningView,
        TotalsView,
        Given,
        Origin,
        Asked,
        Chips,
        Asking,
        AnswerSources,
        Indexing,
        IndexWork,
        SourceShown,
        DocumentState,
        DocumentShown,
        DocumentList,
        PassageShown,
        DocumentText,
        SkillShown,
        SkillList,
        SkillSummary,
        FileSummary,
        FileKind,
        Source,
        Permission,
        QuestionTold,
        StepTold,
        ModelOrigin,
        Fit,
        ModelShown,
        Fetching,
    ];
    let expected = format!("{HEADER}\n{}\n", declarations.join("\n\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/lib/bindings.ts");
    if std::env::var_os("REPRISE_WRITE_BINDINGS").is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        expected,
        "stale; the head of this test says how to write it"
    );
}

//! Random operations against a plain model in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use reprise_library::chats::{
    ChatId, ChatSummary, ExportFormat, Folder, FolderId, Role, StoreError, Turn, TurnId, TurnState,
};

use crate::Bench;

#[derive(Debug, Clone)]
enum Operation {
    CreateChat,
    BeginChat(String),
    Ask {
        chat: Index,
        parent: Option<Index>,
        text: String,
    },
    BeginAnswer(Index),
    Append(Index, String),
    Finish(Index, TurnState),
    Continue(Index),
    Select(Index),
    Rename(Index, String),
    Generate(Index, String),
    Pin(Index, bool),
    Move(Index, Option<Index>),
    AddFolder(String),
    RenameFolder(Index, String),
    RemoveFolder(Index),
    Draft(Option<Index>, String),
    Delete(Index),
    Restore(Index),
    Erase,
    Copy(Index),
    Search(String),
    Reopen,
    Clock(i32),
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(apple|Pear|TREE|杏子|ö)( (apple|pear|nut)){0,3}",
        1 => "[ \\n]{0,2}",
        1 => "\\PC{0,12}",
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    let turn = any::<Index>;
    let ended = prop_oneof![
        Just(TurnState::Done),
        Just(TurnState::Stopped),
        Just(TurnState::Failed)
    ];
    prop_oneof![
        1 => Just(O::CreateChat),
        2 => words().prop_map(O::BeginChat),
        8 => (turn(), prop::option::weighted(0.85, turn()), words())
            .prop_map(|(chat, parent, text)| O::Ask { chat, parent, text }),
        8 => turn().prop_map(O::BeginAnswer),
        6 => (turn(), words()).prop_map(|(turn, text)| O::Append(turn, text)),
        8 => (turn(), ended).prop_map(|(turn, state)| O::Finish(turn, state)),
        2 => turn().prop_map(O::Continue),
        5 => turn().prop_map(O::Select),
        2 => (turn(), words()).prop_map(|(chat, title)| O::Rename(chat, title)),
        2 => (turn(), words()).prop_map(|(chat, title)| O::Generate(chat, title)),
        1 => (turn(), any::<bool>()).prop_map(|(chat, pinned)| O::Pin(chat, pinned)),
        2 => (turn(), prop::option::of(turn())).prop_map(|(chat, folder)| O::Move(chat, folder)),
        1 => words().prop_map(O::AddFolder),
        1 => (turn(), words()).prop_map(|(folder, name)| O::RenameFolder(folder, name)),
        1 => turn().prop_map(O::RemoveFolder),
        2 => (prop::option::of(turn()), words()).prop_map(|(chat, text)| O::Draft(chat, text)),
        1 => turn().prop_map(O::Delete),
        1 => turn().prop_map(O::Restore),
        1 => Just(O::Erase),
        1 => turn().prop_map(O::Copy),
        2 => "(apple|pear|nut|tree)".prop_map(O::Search),
        1 => Just(O::Reopen),
        2 => any::<i32>().prop_map(O::Clock),
    ]
}

#[derive(Debug, Clone, PartialEq)]
enum Titled {
    Not,
    Made,
    Kept,
}

#[derive(Debug, Clone)]
struct ModelChat {
    title: Option<String>,
    titled: Titled,
    folder: Option<FolderId>,
    is_pinned: bool,
    touched: u64,
    is_deleted: bool,
    current: Option<TurnId>,
    draft: String,
}

#[derive(Debug, Clone)]
struct ModelTurn {
    chat: ChatId,
    parent: Option<TurnId>,
    role: Role,
    text: String,
    /// Written and not yet part of the text.
    pieces: String,
    state: TurnState,
    last_child: Option<TurnId>,
}

#[derive(Debug, Default)]
struct Model {
    chats: BTreeMap<ChatId, ModelChat>,
    turns: BTreeMap<TurnId, ModelTurn>,
    folders: BTreeMap<FolderId, String>,
    new_chat_draft: String,
    touches: u64,
}

/// The first line with something in it, which in these tests is never long.
fn title_of(text: &str) -> Option<String> {
    text.lines().map(one_line).find(|line| !line.is_empty())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn pick<K: Copy, V>(map: &BTreeMap<K, V>, index: &Index) -> Option<K> {
    if map.is_empty() {
        None
    } else {
        map.keys().nth(index.index(map.len())).copied()
    }
}

impl Model {
    fn is_alive(&self, chat: ChatId) -> bool {
        self.chats.get(&chat).is_some_and(|chat| !chat.is_deleted)
    }

    fn alive_turn(&self, turn: TurnId) -> Option<&ModelTurn> {
        self.turns.get(&turn).filter(|turn| self.is_alive(turn.chat))
    }

    fn touch(&mut self, chat: ChatId) {
        self.touches += 1;
        self.chats.get_mut(&chat).unwrap().touched = self.touches;
    }

    fn add_chat(&mut self, id: ChatId) {
        assert!(self.chats.keys().all(|other| *other < id), "ids grow");
        self.touches += 1;
        let chat = ModelChat {
            title: None,
            titled: Titled::Not,
            folder: None,
            is_pinned: false,
            touched: self.touches,
            is_deleted: false,
            current: None,
            draft: String::new(),
        };
        self.chats.insert(id, chat);
    }

    fn add_turn(&mut self, turn: &Turn) {
        assert!(self.turns.keys().all(|other| *other < turn.id), "ids grow");
        let new = ModelTurn {
            chat: turn.chat,
            parent: turn.parent,
            role: turn.role,
            text: turn.text.clone(),
            pieces: String::new(),
            state: turn.state,
            last_child: None,
        };
        self.turns.insert(turn.id, new);
        self.touch(turn.chat);
        self.show(turn.chat, turn.id);
    }

    fn asked(&mut self, turn: &Turn) {
        self.add_turn(turn);
        let chat = self.chats.get_mut(&turn.chat).unwrap();
        chat.draft.clear();
        if chat.titled == Titled::Not {
            chat.title = title_of(&turn.text);
            chat.titled = Titled::Made;
        }
    }

    fn show(&mut self, chat: ChatId, leaf: TurnId) {
        self.chats.get_mut(&chat).unwrap().current = Some(leaf);
        let mut child = leaf;
        while let Some(parent) = self.turns[&child].parent {
            self.turns.get_mut(&parent).unwrap().last_child = Some(child);
            child = parent;
        }
    }

    fn leaf_under(&self, turn: TurnId) -> TurnId {
        let youngest = || {
            self.turns
                .iter()
                .rev()
                .find(|(_, child)| child.parent == Some(turn))
                .map(|(id, _)| *id)
        };
        self.turns[&turn]
            .last_child
            .or_else(youngest)
            .map_or(turn, |child| self.leaf_under(child))
    }

    fn has_child(&self, turn: TurnId) -> bool {
        self.turns.values().any(|child| child.parent == Some(turn))
    }

    fn path(&self, leaf: Option<TurnId>) -> Vec<TurnId> {
        let mut path: Vec<TurnId> = std::iter::successors(leaf, |turn| self.turns[turn].parent).collect();
        path.reverse();
        path
    }

    fn siblings(&self, of: TurnId) -> Vec<TurnId> {
        let turn = &self.turns[&of];
        let is_sibling = |other: &ModelTurn| other.chat == turn.chat && other.parent == turn.parent;
        self.turns
            .iter()
            .filter(|(_, other)| is_sibling(other))
            .map(|(id, _)| *id)
            .collect()
    }

    fn listed(&self) -> Vec<ChatId> {
        let mut listed: Vec<(&ChatId, &ModelChat)> = self
            .chats
            .iter()
            .filter(|(_, chat)| !chat.is_deleted && (chat.current.is_some() || !chat.draft.is_empty()))
            .collect();
        listed.sort_by_key(|(_, chat)| (!chat.is_pinned, std::cmp::Reverse(chat.touched)));
        listed.into_iter().map(|(id, _)| *id).collect()
    }

    fn has_folder_named(&self, name: &str) -> bool {
        self.folders.values().any(|other| other == name)
    }

    fn found(&self, word: &str) -> (Vec<ChatId>, Vec<TurnId>) {
        let has = |text: &str| text.to_lowercase().contains(word);
        let mut titles: Vec<(&ChatId, &ModelChat)> = self
            .chats
            .iter()
            .filter(|(_, chat)| !chat.is_deleted && chat.title.as_deref().is_some_and(has))
            .collect();
        titles.sort_by_key(|(_, chat)| std::cmp::Reverse(chat.touched));
        let turns = self
            .turns
            .iter()
            .rev()
            .filter(|(_, turn)| self.is_alive(turn.chat) && has(&turn.text));
        (
            titles.into_iter().map(|(id, _)| *id).collect(),
            turns.map(|(id, _)| *id).collect(),
        )
    }
}

/// The store and the model must agree on whether it can be done; what was done is given.
fn agreed<T>(result: Result<T, StoreError>, is_possible: bool) -> Option<T> {
    match result {
        Ok(value) => {
            assert!(is_possible, "the store did what the model refuses");
            Some(value)
        }
        Err(error @ (StoreError::Missing { .. } | StoreError::Refused(_))) => {
            assert!(!is_possible, "{error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn apply(bench: &mut Bench, model: &mut Model, operation: &Operation) {
    use Operation as O;
    let store = bench.store.as_ref().unwrap();
    let some_chat = |index: &Index| pick(&model.chats, index).unwrap_or(ChatId(1_000_000));
    let some_turn = |index: &Index| pick(&model.turns, index).unwrap_or(TurnId(1_000_000));
    let some_folder = |index: &Index| pick(&model.folders, index).unwrap_or(FolderId(1_000_000));
    match operation {
        O::CreateChat => model.add_chat(store.create_chat().unwrap().id),
        O::BeginChat(text) => {
            if let Some(turn) = agreed(store.begin_chat(text), !text.trim().is_empty()) {
                model.add_chat(turn.chat);
                model.asked(&turn);
                model.new_chat_draft.clear();
            }
        }
        O::Ask { chat, parent, text } => {
            let parent = parent.as_ref().map(some_turn);
            // Mostly a chat that fits the parent.
            let chat = parent
                .and_then(|turn| model.turns.get(&turn))
                .map_or_else(|| some_chat(chat), |turn| turn.chat);
            let may_follow = parent.is_none_or(|parent| {
                model
                    .alive_turn(parent)
                    .is_some_and(|turn| turn.role == Role::Assistant && turn.state != TurnState::Writing)
            });
            let is_possible = model.is_alive(chat) && may_follow && !text.trim().is_empty();
            if let Some(turn) = agreed(store.add_user_turn(chat, parent, text), is_possible) {
                assert_eq!((turn.chat, turn.parent, &turn.text), (chat, parent, text));
                model.asked(&turn);
            }
        }
        O::BeginAnswer(question) => {
            let question = some_turn(question);
            let is_possible = model
                .alive_turn(question)
                .is_some_and(|turn| turn.role == Role::User);
            if let Some(turn) = agreed(store.begin_answer(question, "a model"), is_possible) {
                assert_eq!((turn.parent, turn.state), (Some(question), TurnState::Writing));
                model.add_turn(&turn);
            }
        }
        O::Append(answer, text) => {
            let answer = some_turn(answer);
            let is_writing = model
                .turns
                .get(&answer)
                .is_some_and(|turn| turn.state == TurnState::Writing);
            if agreed(store.append_piece(answer, text), is_writing || text.is_empty()).is_some() && is_writing
            {
                model.turns.get_mut(&answer).unwrap().pieces.push_str(text);
            }
        }
        O::Finish(answer, state) => {
            let answer = some_turn(answer);
            let is_writing = model
                .turns
                .get(&answer)
                .is_some_and(|turn| turn.state == TurnState::Writing);
            if agreed(store.finish_answer(answer, *state, None, None), is_writing).is_some() {
                let turn = model.turns.get_mut(&answer).unwrap();
                let pieces = std::mem::take(&mut turn.pieces);
                turn.text.push_str(&pieces);
                turn.state = *state;
                let chat = turn.chat;
                model.touch(chat);
            }
        }
        O::Continue(answer) => {
            let answer = some_turn(answer);
            let is_possible = model
                .alive_turn(answer)
                .is_some_and(|turn| turn.role == Role::Assistant && turn.state != TurnState::Writing)
                && !model.has_child(answer);
            if let Some(turn) = agreed(store.continue_answer(answer), is_possible) {
                model.turns.get_mut(&answer).unwrap().state = TurnState::Writing;
                model.touch(turn.chat);
                model.show(turn.chat, answer);
            }
        }
        O::Select(turn) => {
            let turn = some_turn(turn);
            if let Some(chat) = agreed(store.select_branch(turn), model.alive_turn(turn).is_some()) {
                model.show(chat.summary.id, model.leaf_under(turn));
            }
        }
        O::Rename(chat, title) => {
            let chat = some_chat(chat);
            let title = one_line(title);
            let is_possible = model.is_alive(chat) && !title.is_empty();
            if agreed(store.rename_chat(chat, &title), is_possible).is_some() {
                let chat = model.chats.get_mut(&chat).unwrap();
                (chat.title, chat.titled) = (Some(title), Titled::Kept);
            }
        }
        O::Generate(chat, title) => {
            let chat = some_chat(chat);
            if agreed(store.set_generated_title(chat, title), model.is_alive(chat)).is_some() {
                let chat = model.chats.get_mut(&chat).unwrap();
                if let (Some(title), Titled::Not | Titled::Made) = (title_of(title), &chat.titled) {
                    (chat.title, chat.titled) = (Some(title), Titled::Kept);
                }
            }
        }
        O::Pin(chat, pinned) => {
            let chat = some_chat(chat);
            if agreed(store.pin_chat(chat, *pinned), model.is_alive(chat)).is_some() {
                model.chats.get_mut(&chat).unwrap().is_pinned = *pinned;
            }
        }
        O::Move(chat, folder) => {
            let (chat, folder) = (some_chat(chat), folder.as_ref().map(some_folder));
            let is_possible =
                model.is_alive(chat) && folder.is_none_or(|folder| model.folders.contains_key(&folder));
            if agreed(store.move_chat(chat, folder), is_possible).is_some() {
                model.chats.get_mut(&chat).unwrap().folder = folder;
            }
        }
        O::AddFolder(name) => {
            let name = one_line(name);
            let is_possible = !name.is_empty() && !model.has_folder_named(&name);
            if let Some(folder) = agreed(store.add_folder(&name), is_possible) {
                assert!(model.folders.keys().all(|other| *other < folder.id), "ids grow");
                model.folders.insert(folder.id, name);
            }
        }
        O::RenameFolder(folder, name) => {
            let folder = some_folder(folder);
            let name = one_line(name);
            let is_own = model.folders.get(&folder) == Some(&name);
            let is_possible = model.folders.contains_key(&folder)
                && !name.is_empty()
                && (is_own || !model.has_folder_named(&name));
            if agreed(store.rename_folder(folder, &name), is_possible).is_some() {
                model.folders.insert(folder, name);
            }
        }
        O::RemoveFolder(folder) => {
            let folder = some_folder(folder);
            if agreed(store.remove_folder(folder), model.folders.contains_key(&folder)).is_some() {
                model.folders.remove(&folder);
                for chat in model
                    .chats
                    .values_mut()
                    .filter(|chat| chat.folder == Some(folder))
                {
                    chat.folder = None;
                }
            }
        }
        O::Draft(None, text) => {
            store.set_draft(None, text).unwrap();
            model.new_chat_draft.clone_from(text);
        }
        O::Draft(Some(chat), text) => {
            let chat = some_chat(chat);
            if agreed(store.set_draft(Some(chat), text), model.is_alive(chat)).is_some() {
                model.chats.get_mut(&chat).unwrap().draft.clone_from(text);
            }
        }
        O::Delete(chat) => {
            let chat = some_chat(chat);
            if agreed(store.delete_chat(chat), model.is_alive(chat)).is_some() {
                model.chats.get_mut(&chat).unwrap().is_deleted = true;
            }
        }
        O::Restore(chat) => {
            let chat = some_chat(chat);
            if agreed(store.restore_chat(chat), model.chats.contains_key(&chat)).is_some() {
                model.chats.get_mut(&chat).unwrap().is_deleted = false;
            }
        }
        O::Erase => {
            let gone: Vec<ChatId> = model
                .chats
                .iter()
                .filter(|(_, chat)| chat.is_deleted)
                .map(|(id, _)| *id)
                .collect();
            assert_eq!(store.erase_deleted(None).unwrap(), gone);
            model.chats.retain(|_, chat| !chat.is_deleted);
            model.turns.retain(|_, turn| model.chats.contains_key(&turn.chat));
        }
        O::Copy(chat) => {
            let chat = some_chat(chat);
            let Some(json) = agreed(store.export(chat, ExportFormat::Json), model.is_alive(chat)) else {
                return;
            };
            let copy = store.import_json(&json).unwrap().id;
            copy_in_model(bench, model, chat, copy);
        }
        O::Search(word) => {
            let (titles, turns) = model.found(word);
            let hits = store.search(word, 1_000).unwrap();
            let found_titles: Vec<ChatId> = hits
                .iter()
                .filter(|hit| hit.turn.is_none())
                .map(|hit| hit.chat)
                .collect();
            let found_turns: Vec<TurnId> = hits.iter().filter_map(|hit| hit.turn).collect();
            assert_eq!((found_titles, found_turns), (titles, turns), "{word}");
            for hit in hits {
                assert!(
                    hit.snippet
                        .iter()
                        .any(|part| part.hit && part.text.to_lowercase().contains(word))
                );
            }
        }
        O::Reopen => {
            let cut_short = model
                .turns
                .values()
                .filter(|turn| turn.state == TurnState::Writing && model.is_alive(turn.chat));
            assert_eq!(usize::from(cut_short.count() > 0), bench.open().len());
            for turn in model
                .turns
                .values_mut()
                .filter(|turn| turn.state == TurnState::Writing)
            {
                let pieces = std::mem::take(&mut turn.pieces);
                turn.text.push_str(&pieces);
                turn.state = TurnState::Interrupted;
            }
        }
        O::Clock(jump) => bench.pass_ms(i64::from(*jump)),
    }
}

/// The copy's turns are those of the original in their order; the way last gone is forgotten but for the shown branch.
fn copy_in_model(bench: &Bench, model: &mut Model, chat: ChatId, copy: ChatId) {
    let original = model.chats[&chat].clone();
    model.add_chat(copy);
    let copied = model.chats.get_mut(&copy).unwrap();
    copied.titled = if original.title.is_some() {
        Titled::Kept
    } else {
        Titled::Not
    };
    copied.title.clone_from(&original.title);
    let old: Vec<TurnId> = model
        .turns
        .iter()
        .filter(|(_, turn)| turn.chat == chat)
        .map(|(id, _)| *id)
        .collect();
    let Some(last) = bench.store().chat(copy).unwrap().turns.last().map(|turn| turn.id) else {
        return;
    };
    let shown_at = old.iter().position(|id| Some(*id) == original.current).unwrap();
    let first = last.0 - shown_at as i64;
    let new_id = |id: TurnId| TurnId(first + old.iter().position(|other| *other == id).unwrap() as i64);
    for id in &old {
        let mut turn = model.turns[id].clone();
        turn.chat = copy;
        turn.parent = turn.parent.map(new_id);
        turn.last_child = None;
        let pieces = std::mem::take(&mut turn.pieces);
        turn.text.push_str(&pieces);
        if turn.state == TurnState::Writing {
            turn.state = TurnState::Interrupted;
        }
        model.turns.insert(new_id(*id), turn);
    }
    model.show(copy, last);
}

fn compare(bench: &Bench, model: &Model) {
    let store = bench.store();
    let list = store.list().unwrap();
    let listed: Vec<ChatId> = list.chats.iter().map(|chat| chat.id).collect();
    assert_eq!(listed, model.listed());
    let mut folders: Vec<Folder> = list.folders;
    folders.sort_by_key(|folder| folder.id);
    let expected: Vec<Folder> = model
        .folders
        .iter()
        .map(|(id, name)| Folder {
            id: *id,
            name: name.clone(),
        })
        .collect();
    assert_eq!(folders, expected);
    assert_eq!(store.new_chat_draft().unwrap(), model.new_chat_draft);
    for (id, chat) in &model.chats {
        if chat.is_deleted {
            assert!(matches!(store.chat(*id), Err(StoreError::Missing { .. })));
            continue;
        }
        let stored = store.chat(*id).unwrap();
        let ChatSummary {
            title,
            folder,
            pinned,
            draft,
            ..
        } = &stored.summary;
        assert_eq!(
            (title, folder, pinned, draft),
            (&chat.title, &chat.folder, &chat.is_pinned, &chat.draft)
        );
        let path: Vec<TurnId> = stored.turns.iter().map(|turn| turn.id).collect();
        assert_eq!(path, model.path(chat.current), "the branch that is shown");
        for turn in stored.turns {
            let expected = &model.turns[&turn.id];
            assert_eq!(turn.text, format!("{}{}", expected.text, expected.pieces));
            assert_eq!(
                (turn.parent, turn.role, turn.state),
                (expected.parent, expected.role, expected.state)
            );
            assert_eq!(turn.branch.siblings, model.siblings(turn.id));
            assert_eq!(turn.branch.siblings[turn.branch.index as usize], turn.id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_does_what_a_plain_model_does(operations in prop::collection::vec(operation(), 1..120)) {
        let mut bench = Bench::new();
        let mut model = Model::default();
        for operation in &operations {
            apply(&mut bench, &mut model, operation);
            compare(&bench, &model);
        }
    }
}

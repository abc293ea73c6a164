// Generated from the program's own types; a test of reprise-app fails when this file is another.
// To write it: REPRISE_WRITE_BINDINGS=1 cargo test -p reprise-app --test bindings

/**
 * Who wrote a turn.
 */
export type Role = "user" | "assistant";

/**
 * How far a turn has come, and for answers why they ended.
 */
export type TurnState = "writing" | "done" | "stopped" | "limit" | "window" | "repeating" | "interrupted" | "failed";

/**
 * What an answer took.
 */
export type AnswerStats = {
/**
 * The model's name.
 */
model: string,
/**
 * Tokens of the prompt.
 */
promptTokens: number,
/**
 * Prompt tokens whose keys and values were there because everything before them was the same.
 */
reusedPrefixTokens: number,
/**
 * Prompt tokens reused at another place.
 */
reusedElsewhereTokens: number,
/**
 * Tokens of the answer.
 */
answerTokens: number,
/**
 * Whole milliseconds from the request to the first token.
 */
firstTokenMs: number,
/**
 * Whole milliseconds from the first token to the last.
 */
decodeMs: number,
/**
 * Whole milliseconds that reading the reused tokens would have taken.
 */
savedMs: number, };

/**
 * Where a turn stands among the turns that share its parent; more than one are branches.
 */
export type Branch = {
/**
 * All turns with this parent, oldest first.
 */
siblings: Array<number>,
/**
 * This turn's place among them, from 0.
 */
index: number, };

/**
 * One question or one answer.
 */
export type Turn = {
/**
 * Its id.
 */
id: number,
/**
 * The chat it belongs to.
 */
chat: number,
/**
 * The turn it follows; none begins a chat.
 */
parent: number | null,
/**
 * Who wrote it.
 */
role: Role,
/**
 * Its text; of an answer that is being written, what is there so far.
 */
text: string,
/**
 * How far it has come.
 */
state: TurnState,
/**
 * When it began, in milliseconds since 1970 (UTC).
 */
createdMs: number,
/**
 * What it took; none for questions and for answers that did not end in an orderly way. Of an answer that is being
 * continued, what its beginning took.
 */
stats: AnswerStats | null,
/**
 * What failed.
 */
error: string | null,
/**
 * Its place among its siblings.
 */
branch: Branch, };

/**
 * A chat as the list shows it.
 */
export type ChatSummary = {
/**
 * Its id.
 */
id: number,
/**
 * None until something was asked.
 */
title: string | null,
/**
 * The folder it is in.
 */
folder: number | null,
/**
 * Kept at the top.
 */
pinned: boolean,
/**
 * When it was made, in milliseconds since 1970 (UTC).
 */
createdMs: number,
/**
 * When something was last said in it.
 */
updatedMs: number,
/**
 * What was typed and not sent.
 */
draft: string, };

/**
 * A folder of chats.
 */
export type Folder = {
/**
 * Its id.
 */
id: number,
/**
 * Its name; no two are the same.
 */
name: string, };

/**
 * Everything the sidebar shows.
 */
export type ChatList = {
/**
 * Pinned ones first, then the ones something was last said in.
 */
chats: Array<ChatSummary>,
/**
 * By name.
 */
folders: Array<Folder>, };

/**
 * A chat and the branch of it that is shown.
 */
export type Chat = {
/**
 * The chat itself.
 */
summary: ChatSummary,
/**
 * The turns from the first to the last of the branch that is shown.
 */
turns: Array<Turn>, };

/**
 * A piece of a search hit's text; `hit` marks what was searched for.
 */
export type SnippetPart = {
/**
 * The text.
 */
text: string,
/**
 * Whether it is what was searched for.
 */
hit: boolean, };

/**
 * A place where the words that were searched for are.
 */
export type SearchHit = {
/**
 * The chat it is in.
 */
chat: number,
/**
 * That chat's title.
 */
title: string,
/**
 * The turn with the words; none when they are in the title.
 */
turn: number | null,
/**
 * The words and a little of what is around them.
 */
snippet: Array<SnippetPart>,
/**
 * When something was last said in the chat.
 */
updatedMs: number, };

/**
 * What a chat is written out as.
 */
export type ExportFormat = "markdown" | "json";

/**
 * How the page looks.
 */
export type Theme = "system" | "light" | "dark";

/**
 * The language of the window.
 */
export type Language = "system" | "english" | "german";

/**
 * How keys and values of the context are stored.
 */
export type KvStorage = "profile" | "f16" | "q8" | "tq4";

/**
 * What of earlier prompts is used again.
 */
export type ReuseChoice = "anywhere" | "prefix" | "nothing";

/**
 * What the person chose.
 */
export type Settings = {
/**
 * How the page looks.
 */
theme: Theme,
/**
 * What language the page speaks.
 */
language: Language,
/**
 * What the model is told before every chat.
 */
systemPrompt: string,
/**
 * A model's name or file; none is the default one.
 */
model: string | null,
/**
 * The window in tokens; none is the smaller of the model's own and 8,192.
 */
contextTokens: number | null,
/**
 * Compute threads; none is the machine's cores.
 */
threads: number | null,
/**
 * How keys and values of the context are stored.
 */
kvStorage: KvStorage,
/**
 * Memory for the keys and values of all chats, in millions of bytes; none is a share of what is free.
 */
kvBudgetMegabytes: number | null,
/**
 * What the program may take before new work is refused, in millions of bytes; none is a share of the machine's.
 */
memoryLimitMegabytes: number | null,
/**
 * What of earlier prompts is used again.
 */
reuse: ReuseChoice,
/**
 * Of text that is used again at another place, the share that is computed again, from 0 to 1.
 */
recomputeRatio: number,
/**
 * Disk for what was read, in millions of bytes; none is what suits the disk, and 0 keeps nothing.
 */
diskBudgetMegabytes: number | null,
/**
 * Whether an idle machine on mains power reads indexed documents and skills before somebody asks about them.
 */
readAhead: boolean,
/**
 * Whether the model may choose skills and call tools by itself, where it can.
 */
tools: boolean,
/**
 * Whether tokens are guessed ahead while one answer is written alone.
 */
speculation: boolean,
/**
 * 0 takes the most likely token; higher is livelier.
 */
temperature: number,
/**
 * The smallest set of tokens whose probability reaches this is drawn from.
 */
topP: number,
/**
 * Above 1, tokens that came up lately are less likely.
 */
repetitionPenalty: number,
/**
 * Most tokens of an answer.
 */
maxAnswerTokens: number,
/**
 * Whether the list of chats is shown.
 */
sidebarOpen: boolean,
/**
 * Whether the panel at the right is shown.
 */
panelOpen: boolean, };

/**
 * A model that can be chosen.
 */
export type ModelChoice = {
/**
 * What `Settings.model` takes.
 */
id: string,
/**
 * What a person reads.
 */
name: string,
/**
 * Bytes of its file.
 */
sizeBytes: number,
/**
 * A sentence about it.
 */
note: string, };

/**
 * The model that answers.
 */
export type ModelState = { "status": "loading",
/**
 * The name it is known by so far.
 */
name: string, } | { "status": "ready",
/**
 * Its own name.
 */
name: string,
/**
 * The type most weights have.
 */
quantisation: string,
/**
 * The window in use.
 */
contextTokens: number,
/**
 * The window it was trained for.
 */
trainedContextTokens: number,
/**
 * Compute threads in use.
 */
threads: number,
/**
 * What computes.
 */
backend: string,
/**
 * Something a person should know about it, such as a missing chat template.
 */
warning: string | null,
/**
 * Why nothing that is read now is kept on disk, where it was to be.
 */
storeFault: string | null, } | { "status": "failed",
/**
 * The name it is known by.
 */
name: string,
/**
 * What is wrong, and what to do.
 */
error: string, };

/**
 * What a request is at.
 */
export type Phase = { "at": "queued" } | { "at": "loading" } | { "at": "reading",
/**
 * Tokens read, those reused included.
 */
doneTokens: number,
/**
 * Tokens of the prompt.
 */
totalTokens: number,
/**
 * Tokens that were known already.
 */
reusedTokens: number,
/**
 * None before the speed is known.
 */
secondsLeft: number | null, } | { "at": "writing" };

/**
 * Something that happened; the page gets them in order, a list at most once per frame.
 */
export type AppEvent = { "kind": "model",
/**
 * The state now.
 */
model: ModelState, } | { "kind": "phase",
/**
 * The chat.
 */
chat: number,
/**
 * The answer.
 */
turn: number,
/**
 * What it is at.
 */
phase: Phase, } | { "kind": "text",
/**
 * The chat.
 */
chat: number,
/**
 * The answer.
 */
turn: number,
/**
 * The length (UTF-16 units) of what came before.
 */
from: number,
/**
 * What comes now.
 */
text: string, } | { "kind": "ended",
/**
 * The answer.
 */
turn: Turn, } | { "kind": "chat",
/**
 * The chat now.
 */
summary: ChatSummary, } | { "kind": "notice",
/**
 * The sentence.
 */
message: string, } | { "kind": "documents",
/**
 * How far they are.
 */
indexing: Indexing, } | { "kind": "step",
/**
 * The chat.
 */
chat: number,
/**
 * The answer.
 */
turn: number,
/**
 * What happened.
 */
step: StepTold, } | { "kind": "asks",
/**
 * The question.
 */
asking: Asking, } | { "kind": "asked",
/**
 * Its number.
 */
id: number, } | { "kind": "fetching",
/**
 * How far.
 */
fetching: Fetching, } | { "kind": "snapshot",
/**
 * Its latest picture; none while no model is loaded.
 */
snapshot: Snapshot | null, };

/**
 * An answer under way when the page begins.
 */
export type UnderWay = {
/**
 * Its chat.
 */
chat: number,
/**
 * The answer.
 */
turn: number,
/**
 * What it is at.
 */
phase: Phase, };

/**
 * What the page needs to begin.
 */
export type Start = {
/**
 * What the person chose.
 */
settings: Settings,
/**
 * What `Settings` are where nothing was chosen.
 */
defaultSettings: Settings,
/**
 * The model that answers.
 */
model: ModelState,
/**
 * The chats.
 */
list: ChatList,
/**
 * Draft of the chat that does not exist yet.
 */
newChatDraft: string,
/**
 * What a person should know once: a backup that was made, answers that a crash cut short.
 */
notices: Array<string>,
/**
 * Answers under way, when the page was loaded anew.
 */
phases: Array<UnderWay>,
/**
 * Questions that wait for the person, likewise.
 */
questions: Array<Asking>,
/**
 * The program's version.
 */
version: string,
/**
 * The source it was built from.
 */
commit: string,
/**
 * Where the chats are kept.
 */
dataFolder: string,
/**
 * True where the system's modifier key is Cmd.
 */
isMac: boolean, };

/**
 * The window's tokens for a chat's next prompt, by owner. They add up to `window`, unless the draft does not fit.
 */
export type ContextUse = {
/**
 * All tokens there are.
 */
window: number,
/**
 * The system prompt's, with what the model's template writes around the messages.
 */
system: number,
/**
 * Those of skills that questions were asked with.
 */
skills: number,
/**
 * Those of passages that questions were given: of documents, and of earlier turns that were found again.
 */
passages: number,
/**
 * Those of earlier turns.
 */
history: number,
/**
 * Those of what is typed, with what the template writes around it.
 */
draft: number,
/**
 * Those of what is typed alone.
 */
typed: number,
/**
 * Those kept free for the answer.
 */
reservedOutput: number,
/**
 * The rest.
 */
free: number,
/**
 * Oldest turns that the model no longer sees.
 */
hiddenTurns: number, };

/**
 * An owner, and what is kept for it. Chunks with several owners count for each.
 */
export type KeptOwner = {
/**
 * Its name in full, such as `chat:12`.
 */
owner: string,
/**
 * What it is, such as `chat`.
 */
kind: string,
/**
 * What a person knows it by: a chat's title, a document's name.
 */
name: string,
/**
 * Chunks it holds.
 */
chunks: number,
/**
 * Bytes of their files.
 */
bytes: number, };

/**
 * A chunk that is kept.
 */
export type KeptChunk = {
/**
 * Its number.
 */
id: string,
/**
 * Its tokens.
 */
tokens: number,
/**
 * Bytes of its file.
 */
bytes: number,
/**
 * How much it was used lately.
 */
uses: number,
/**
 * Milliseconds that keeping a kilobyte of it is expected to save: the least goes first.
 */
score: number,
/**
 * Whether it stays whatever else has to go.
 */
pinned: boolean,
/**
 * When it was stored, in milliseconds since 1970.
 */
madeMs: number,
/**
 * Whether its keys and values are exact; else a part of them was moved from elsewhere.
 */
exact: boolean,
/**
 * Whether it is in the engine's memory as well, or still only there, waiting to be written.
 */
inMemory: boolean, };

/**
 * What is kept on disk of texts that were read.
 */
export type Kept = {
/**
 * For whom, those with the most bytes first.
 */
owners: Array<KeptOwner>,
/**
 * Chunks in all; those of several owners count once.
 */
chunks: number,
/**
 * Bytes of their files.
 */
bytes: number,
/**
 * Where they are.
 */
folder: string, };

/**
 * A prompt and how it was read, for a person to see.
 */
export type Inspection = {
/**
 * Whether this is how the prompt would be read now, because how it was read is not known any more.
 */
isNow: boolean,
/**
 * Tokens of the prompt.
 */
promptTokens: number,
/**
 * Those at its beginning that were known as they stand.
 */
prefixTokens: number,
/**
 * Those that came from elsewhere.
 */
movedTokens: number,
/**
 * Those of them that were computed again.
 */
recomputedTokens: number,
/**
 * All of the prompt, in order.
 */
stretches: Array<Stretch>,
/**
 * The chunks behind it, in the order in which they are needed.
 */
chunks: Array<UsedChunk>,
/**
 * Where it began to differ from what was known.
 */
divergence: Divergence,
/**
 * The graph calls chosen, in order.
 */
calls: Array<Call>,
/**
 * What went on until the first token.
 */
times: Times | null, };

/**
 * A stretch of a prompt of one origin, within one segment.
 */
export type Stretch = {
/**
 * The position of its first token.
 */
from: number,
/**
 * The position behind its last one.
 */
to: number,
/**
 * How it was obtained.
 */
how: How,
/**
 * Its text, with what the model's template writes.
 */
text: string,
/**
 * What it is.
 */
part: PromptPart,
/**
 * What a person knows its owner by.
 */
owner: string | null,
/**
 * The stored chunk it comes from.
 */
chunk: string | null, };

/**
 * How tokens were obtained.
 */
export type How = "pool" | "stored" | "moved" | "again" | "new";

/**
 * What a part of a prompt is.
 */
export type PromptPart = "system" | "skill" | "passage" | "turn" | "question";

/**
 * A chunk behind a prompt.
 */
export type UsedChunk = {
/**
 * Its number.
 */
id: string,
/**
 * Tokens of the prompt that come from it.
 */
usedTokens: number,
/**
 * What people know its owners by.
 */
owners: Array<string>,
/**
 * What is known of it; none when it is not stored any more.
 */
kept: KeptChunk | null, };

/**
 * Where a prompt began to differ from what was known.
 */
export type Divergence = {
/**
 * The first token that was not known as it stands.
 */
at: number,
/**
 * How the prompt goes on there.
 */
text: string,
/**
 * Why.
 */
reason: Reason, };

/**
 * Why a prompt is not known from some token on.
 */
export type Reason = { "kind": "whole" } | { "kind": "nothing" } | { "kind": "ended" } | { "kind": "differs",
/**
 * How.
 */
earlier: string, } | { "kind": "letGo" };

/**
 * A graph call.
 */
export type Call = {
/**
 * What it is for.
 */
purpose: CallPurpose,
/**
 * Tokens it computes.
 */
tokens: number, };

/**
 * What a graph call is for.
 */
export type CallPurpose = "read" | "fillIn" | "probe" | "recompute";

/**
 * What went on until the first token, in milliseconds.
 */
export type Times = {
/**
 * Waiting for a lane.
 */
waitingMs: number,
/**
 * From there to the first token.
 */
readingMs: number,
/**
 * Looking for what is stored.
 */
matching: Step,
/**
 * Reading chunks from disk.
 */
loading: Step,
/**
 * Turning keys to where they are needed.
 */
turning: Step,
/**
 * Computing.
 */
computing: Step,
/**
 * Storing what earlier requests left.
 */
storing: Step, };

/**
 * How long one kind of work took, and how much of it ran behind computing.
 */
export type Step = {
/**
 * All of it.
 */
takenMs: number,
/**
 * What nobody waited for.
 */
hiddenMs: number, };

/**
 * Why a command failed: what, where and what to do.
 */
export type Failure = {
/**
 * The sentence.
 */
message: string, };

/**
 * Everything the engine shows of itself. Bytes, tokens, pages and seconds, as the names say.
 */
export type Snapshot = {
/**
 * Counts up with each new picture.
 */
sequence: number,
/**
 * The model loaded.
 */
model: ModelView,
/**
 * The KV pool.
 */
pool: PoolView,
/**
 * Requests, waiting and active.
 */
lanes: Array<LaneView>,
/**
 * Parts of the model.
 */
components: Array<ComponentView>,
/**
 * Memory of the process and the machine.
 */
memory: MemoryView,
/**
 * Where chunks are kept.
 */
tiers: TiersView,
/**
 * What is being brought into memory before it is asked for.
 */
prefetch: Array<PrefetchView>,
/**
 * Images and what they wait for. Empty: images are not read yet.
 */
images: Array<ImageView>,
/**
 * Guessing tokens ahead.
 */
speculation: SpeculationView,
/**
 * Tuning of the model in the background, while it goes on.
 */
tuning: TuningView | null,
/**
 * Totals since the model was loaded.
 */
totals: TotalsView, };

/**
 * The model loaded.
 */
export type ModelView = {
/**
 * Its name.
 */
name: string,
/**
 * The window of one request.
 */
context_tokens: number,
/**
 * How keys and values are stored.
 */
kv_format: string,
/**
 * Bytes of keys and values a token takes.
 */
kv_token_bytes: number,
/**
 * What computes.
 */
backend: string, };

/**
 * The KV pool.
 */
export type PoolView = {
/**
 * Pages in all.
 */
pages: number,
/**
 * Pages that active requests hold.
 */
in_use_pages: number,
/**
 * Pages that only ended requests hold: kept for later prompts, given up when needed.
 */
cached_pages: number,
/**
 * Pages that nobody holds.
 */
free_pages: number,
/**
 * Free pages promised to active requests.
 */
promised_pages: number,
/**
 * Most pages held at once.
 */
high_water_pages: number,
/**
 * Tokens of a page.
 */
page_tokens: number,
/**
 * Bytes of a page over all layers.
 */
page_bytes: number,
/**
 * Bytes of the pool's memory that the system has really given.
 */
resident_bytes: number,
/**
 * Who holds each page, in the pool's order: an index into `owners`, or none.
 */
map: Array<number | null>,
/**
 * The owners the map names.
 */
owners: Array<OwnerView>, };

/**
 * Someone who holds pages.
 */
export type OwnerView = {
/**
 * Who asked: a chat, a client.
 */
name: string,
/**
 * Whether it is an active request, or what an ended one left.
 */
is_active: boolean,
/**
 * Pages it holds; shared ones count for each.
 */
pages: number,
/**
 * Tokens it holds.
 */
tokens: number, };

/**
 * One request.
 */
export type LaneView = {
/**
 * Its number.
 */
id: number,
/**
 * Who asked.
 */
owner: string,
/**
 * Tokens of the prompt.
 */
prompt_tokens: number,
/**
 * Those whose KV was already there.
 */
reused_tokens: number,
/**
 * What it does.
 */
phase: PhaseView, };

/**
 * What a request does.
 */
export type PhaseView = { "kind": "queued",
/**
 * Requests before it.
 */
ahead: number,
/**
 * Later requests that went before it.
 */
overtaken: number,
/**
 * Seconds since it came.
 */
waited_seconds: number, } | { "kind": "prefill",
/**
 * Tokens in place.
 */
done_tokens: number,
/**
 * Seconds until it is read, as the last calls went; none before the first.
 */
seconds_left: number | null, } | { "kind": "decode",
/**
 * Tokens of the answer.
 */
answer_tokens: number,
/**
 * Tokens a second.
 */
tokens_per_second: number, };

/**
 * A part of the model.
 */
export type ComponentView = {
/**
 * Backbone, embedding, head, predictor.
 */
name: string,
/**
 * Where it is.
 */
state: ComponentState,
/**
 * Bytes it holds in this process.
 */
bytes: number,
/**
 * Requests that need it.
 */
owners: number[], };

/**
 * Where a part of the model is.
 */
export type ComponentState = "resident" | "mapped" | "released" | "absent";

/**
 * Memory of the process and the machine. The engine's own counts stand beside what the system says.
 */
export type MemoryView = {
/**
 * Resident bytes of the process; none where the system does not say.
 */
process_bytes: number | null,
/**
 * What the process may take before new work is refused.
 */
limit_bytes: number,
/**
 * Memory programs can still have.
 */
available_bytes: number,
/**
 * The machine's memory.
 */
total_bytes: number,
/**
 * Percent of the last ten seconds in which programs waited for memory; none off Linux.
 */
stalled_percent: number | null,
/**
 * Weights, as the engine counts.
 */
weight_bytes: number,
/**
 * Scratch of the graphs, as the engine counts: the same whatever the context's length.
 */
workspace_bytes: number,
/**
 * Pages of the pool that are really there, as the engine counts.
 */
kv_bytes: number,
/**
 * Why new work would be refused now, if it would.
 */
refusal: string | null, };

/**
 * Where chunks are kept beyond the pool; both are zero without a store.
 */
export type TiersView = {
/**
 * Chunks kept in memory.
 */
memory: TierView,
/**
 * Chunks on disk.
 */
flash: TierView, };

/**
 * One tier.
 */
export type TierView = {
/**
 * Bytes held.
 */
bytes: number,
/**
 * Chunks held.
 */
chunks: number,
/**
 * Chunks not yet written to disk.
 */
dirty_chunks: number,
/**
 * Lookups that found what they looked for, and all of them.
 */
hits: number,
/**
 * All lookups.
 */
lookups: number, };

/**
 * Something being brought into memory.
 */
export type PrefetchView = {
/**
 * Whose it is.
 */
owner: string,
/**
 * Why.
 */
reason: string, };

/**
 * An image.
 */
export type ImageView = {
/**
 * Its name.
 */
name: string,
/**
 * What it waits for, or where it is.
 */
state: string, };

/**
 * Guessing tokens ahead.
 */
export type SpeculationView = {
/**
 * How: off, prompt lookup, draft model.
 */
method: string,
/**
 * Tokens guessed.
 */
guessed: number,
/**
 * Tokens guessed right.
 */
accepted: number, };

/**
 * Tuning of the model in the background.
 */
export type TuningView = {
/**
 * What it is doing.
 */
activity: string,
/**
 * Share done.
 */
share: number, };

/**
 * Totals since the model was loaded.
 */
export type TotalsView = {
/**
 * Requests that ended.
 */
requests: number,
/**
 * Requests that were refused.
 */
refused: number,
/**
 * Prompt tokens of ended requests.
 */
prompt_tokens: number,
/**
 * Those of them that were reused.
 */
reused_tokens: number,
/**
 * Tokens answered.
 */
answer_tokens: number, };

/**
 * Something that a question was given to be answered from, or that an answer was made with.
 */
export type Given = {
/**
 * What a person sees, and what an answer names it by: "report.pdf, page 3".
 */
label: string,
/**
 * The text as the model reads it.
 */
text: string,
/**
 * Where it comes from.
 */
source: Origin, };

/**
 * Where something comes from that a question was given.
 */
export type Origin = { "kind": "passage",
/**
 * The document's file.
 */
path: string,
/**
 * Whose the passage's keys and values are (see [`reprise_engine::Owner`]).
 */
owner: string,
/**
 * Where it stands there, in words: "page 3".
 */
place: string,
/**
 * Its first byte in the document's text.
 */
start: number,
/**
 * The byte after its last.
 */
end: number,
/**
 * Whether it was recognised in a picture.
 */
isOcr: boolean, } | { "kind": "earlier",
/**
 * Its question.
 */
turn: number, } | { "kind": "skill",
/**
 * Its name.
 */
name: string, } | { "kind": "call" } | { "kind": "result",
/**
 * Which result of the answer it is a part of, from 0.
 */
number: number,
/**
 * The skill whose text it is.
 */
skill: string | null, };

/**
 * What a message is asked with beside its text.
 */
export type Asked = {
/**
 * Documents that it is about, by their numbers.
 */
documents: Array<string>,
/**
 * Whether it is about all of them.
 */
allDocuments: boolean,
/**
 * Skills that it is to be answered with, by their names.
 */
skills: Array<string>, };

/**
 * What the next message of a chat is asked with beside its text, as chips.
 */
export type Chips = {
/**
 * Documents that it is about; those that are gone meanwhile are left out.
 */
documents: Array<DocumentShown>,
/**
 * Whether it is about all of them.
 */
allDocuments: boolean,
/**
 * Skills that it is to be answered with, by their names.
 */
skills: Array<string>, };

/**
 * A question to the person before something runs.
 */
export type Asking = {
/**
 * Its number.
 */
id: number,
/**
 * The chat whose answer wants it.
 */
chat: number,
/**
 * What is asked, and what "always" would mean.
 */
question: QuestionTold, };

/**
 * What an answer was made from.
 */
export type AnswerSources = {
/**
 * The answer with its marks as links to `passage:N`, N being a place in `given`, and without marks that name nothing.
 */
text: string,
/**
 * Passages, earlier exchanges and skills that its question was given, in the order of the prompt.
 */
given: Array<Given>,
/**
 * Those that the answer names.
 */
cited: Array<number>,
/**
 * What it did with tools.
 */
steps: Array<StepTold>, };

/**
 * How far the documents are.
 */
export type Indexing = {
/**
 * What is done.
 */
work: IndexWork,
/**
 * Documents to be read.
 */
waiting: number,
/**
 * Documents whose passages can be found.
 */
ready: number,
/**
 * Documents without text.
 */
failed: number,
/**
 * Files in folders of kinds that are not read.
 */
skipped: number,
/**
 * Passages.
 */
passages: number,
/**
 * Passages that are found by their words only, so far.
 */
withoutVector: number,
/**
 * Bytes of the index on disk.
 */
bytes: number, };

/**
 * What is done with the documents.
 */
export type IndexWork = { "at": "idle" } | { "at": "stopped" } | { "at": "failed",
/**
 * Why, and what to do.
 */
message: string, } | { "at": "looking",
/**
 * Where.
 */
path: string, } | { "at": "reading",
/**
 * Files read.
 */
done: number,
/**
 * Files to be read.
 */
total: number,
/**
 * The file read last.
 */
name: string, } | { "at": "embedding",
/**
 * Passages done.
 */
done: number,
/**
 * Passages to be done.
 */
total: number, };

/**
 * A file or folder that was added.
 */
export type SourceShown = {
/**
 * Its number.
 */
id: number,
/**
 * Where it is.
 */
path: string,
/**
 * Whether everything in it counts.
 */
isFolder: boolean,
/**
 * Documents found in it.
 */
documents: number,
/**
 * Whether it was there when last looked at.
 */
isThere: boolean,
/**
 * Whether it is the program's own copy of a file that came without a path.
 */
isCopy: boolean, };

/**
 * How far a document is.
 */
export type DocumentState = "waiting" | "ready" | "failed" | "skipped";

/**
 * A document.
 */
export type DocumentShown = {
/**
 * Its number.
 */
id: string,
/**
 * Its source's number.
 */
source: number,
/**
 * Its name without folder.
 */
name: string,
/**
 * Where it is.
 */
path: string,
/**
 * Whether that is the program's own copy of a file that came without a path.
 */
isCopy: boolean,
/**
 * Its size.
 */
bytes: number,
/**
 * How far it is.
 */
state: DocumentState,
/**
 * Why there is no text, and what to do.
 */
trouble: string | null,
/**
 * Whether a password would help.
 */
needsPassword: boolean,
/**
 * What a person should know about how it was read.
 */
notes: Array<string>,
/**
 * Whether its text, or some of it, was recognised in pictures.
 */
isOcr: boolean,
/**
 * Passages it has.
 */
passages: number, };

/**
 * The documents, as the screen of them shows them.
 */
export type DocumentList = {
/**
 * What was added.
 */
sources: Array<SourceShown>,
/**
 * The documents that were asked for, the first of them when they are many.
 */
documents: Array<DocumentShown>,
/**
 * How many were asked for.
 */
total: number,
/**
 * How far they are.
 */
indexing: Indexing,
/**
 * What a person should know: why passages are found by words only, why scans are not read, what cannot be watched.
 */
notes: Array<string>, };

/**
 * A passage of a document.
 */
export type PassageShown = {
/**
 * Where it stands: "page 3".
 */
place: string,
/**
 * The headings it begins under.
 */
headings: Array<string>,
/**
 * Its text.
 */
text: string,
/**
 * Its first byte in the document's text.
 */
start: number,
/**
 * The byte after its last.
 */
end: number,
/**
 * Whether it was recognised in a picture.
 */
isOcr: boolean, };

/**
 * A document's text.
 */
export type DocumentText = {
/**
 * The document.
 */
document: DocumentShown,
/**
 * Its passages in order.
 */
passages: Array<PassageShown>, };

/**
 * A skill, and what it takes of a prompt.
 */
export type SkillShown = {
/**
 * The skill.
 */
skill: SkillSummary,
/**
 * Tokens of its instructions; none while no model is loaded.
 */
tokens: number | null, };

/**
 * The skills.
 */
export type SkillList = {
/**
 * Those that can be used, by name.
 */
skills: Array<SkillShown>,
/**
 * Why others cannot: what, where and what to do.
 */
troubles: Array<string>,
/**
 * Where they are looked for.
 */
folders: Array<string>,
/**
 * Whether the model that is loaded can call tools; none while none is.
 */
canCall: boolean | null, };

/**
 * A skill.
 */
export type SkillSummary = {
/**
 * Its name.
 */
name: string,
/**
 * What it is for.
 */
description: string,
/**
 * Where it comes from.
 */
source: Source,
/**
 * Its folder, as a person would type it.
 */
folder: string,
/**
 * Whether it is on.
 */
isEnabled: boolean,
/**
 * Whether its scripts, as they are now, may run without asking.
 */
isTrusted: boolean,
/**
 * Under which licence it is.
 */
license: string | null,
/**
 * What it needs.
 */
compatibility: string | null,
/**
 * Tools that its author expects.
 */
allowedTools: Array<string>,
/**
 * What else its front matter says.
 */
metadata: { [key in string]: string },
/**
 * Its files besides SKILL.md.
 */
files: Array<FileSummary>,
/**
 * What is odd about it.
 */
warnings: Array<string>,
/**
 * What it tells a model.
 */
body: string, };

/**
 * A file of a skill.
 */
export type FileSummary = {
/**
 * Where it is in the folder, with `/` between.
 */
path: string,
/**
 * Its size.
 */
bytes: number,
/**
 * What it is for.
 */
kind: FileKind, };

/**
 * What a file of a skill is for.
 */
export type FileKind = "reference" | "script" | "asset";

/**
 * Where a skill comes from; the first of two with the same name counts.
 */
export type Source = "project" | "user" | "app";

/**
 * What a person says.
 */
export type Permission = "once" | "always" | "deny";

/**
 * A question to the person.
 */
export type QuestionTold = {
/**
 * What is asked, in words.
 */
words: string,
/**
 * What "always" would mean.
 */
alwaysMeans: string, };

/**
 * A step of an answer with tools, besides its text and the reading of its prompt, which the window shows as it does
 * without tools.
 */
export type StepTold = { "kind": "calls",
/**
 * The tool.
 */
tool: string,
/**
 * Its arguments, as JSON.
 */
arguments: string, } | { "kind": "broken",
/**
 * What the model wrote, its beginning.
 */
text: string,
/**
 * What is wrong with it.
 */
reason: string, } | { "kind": "starting",
/**
 * Whose it is.
 */
skill: string,
/**
 * The script.
 */
script: string,
/**
 * Its arguments.
 */
arguments: Array<string>, } | { "kind": "skill",
/**
 * The skill.
 */
skill: string,
/**
 * Tokens of it.
 */
tokens: number,
/**
 * Whether it had no room.
 */
isLeftOut: boolean, } | { "kind": "reference",
/**
 * The skill.
 */
skill: string,
/**
 * The file.
 */
file: string,
/**
 * Tokens of it.
 */
tokens: number,
/**
 * Whether it was cut to fit.
 */
isCut: boolean, } | { "kind": "script",
/**
 * Whose it is.
 */
skill: string,
/**
 * The script.
 */
script: string,
/**
 * How it ended, in words.
 */
ending: string,
/**
 * Whether it succeeded.
 */
isDone: boolean,
/**
 * What it wrote.
 */
output: string,
/**
 * Milliseconds that it took.
 */
milliseconds: number, } | { "kind": "server",
/**
 * The tool.
 */
tool: string,
/**
 * What it said.
 */
text: string,
/**
 * Whether it says that it failed.
 */
isError: boolean, } | { "kind": "refused",
/**
 * Why, in words.
 */
reason: string, } | { "kind": "outOfSteps",
/**
 * How often it was asked.
 */
steps: number, };

/**
 * How a model is there.
 */
export type ModelOrigin = "catalogue" | "added" | "found";

/**
 * Whether something fits.
 */
export type Fit = "fits" | "tight" | "tooLarge";

/**
 * A model, on this machine or known.
 */
export type ModelShown = {
/**
 * What `Settings.model` takes; of one that was found, its file.
 */
id: string,
/**
 * What a person reads.
 */
name: string,
/**
 * A sentence about it.
 */
note: string,
/**
 * How it is there.
 */
origin: ModelOrigin,
/**
 * Which program has it, of one that was found.
 */
foundIn: string | null,
/**
 * Its file, where it is here.
 */
path: string | null,
/**
 * Bytes of its file.
 */
sizeBytes: number,
/**
 * The type most weights have, where the file is here.
 */
quantisation: string | null,
/**
 * The window it was trained for.
 */
contextTokens: number | null,
/**
 * Bytes that it takes with the window in the settings; about that many where its file is not here.
 */
needsBytes: number | null,
/**
 * Whether that fits.
 */
fit: Fit | null,
/**
 * Under which licence it is.
 */
licence: string | null,
/**
 * Where it is described.
 */
page: string | null,
/**
 * Why it cannot be used, of a file that is here.
 */
trouble: string | null,
/**
 * Whether it can be fetched from here.
 */
canFetch: boolean, };

/**
 * How far a model that is fetched has come.
 */
export type Fetching = {
/**
 * Its name in the catalogue.
 */
id: string,
/**
 * Bytes that are here.
 */
doneBytes: number,
/**
 * Bytes of the whole file, once they are known.
 */
totalBytes: number | null,
/**
 * Whether it has ended, well if there is no trouble.
 */
isEnded: boolean,
/**
 * Why it is not here, and what to do.
 */
trouble: string | null, };

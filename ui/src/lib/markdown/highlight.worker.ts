// The worker that colours code, so that a long block never holds up the page. Works in short slices: between them it
// hears which sessions were closed, and the sessions take turns.
import { LineTokenizer } from './tokenize';
import type { HighlightAnswer, HighlightRequest, Run } from './tokens';

const SLICE_LINES = 100;
/** A block that takes longer than this altogether stays plain from there on. */
const SESSION_LIMIT_MS = 10_000;

type Session = { tokenizer: LineTokenizer; waiting: string[]; next: number; spentMs: number };

const sessions = new Map<number, Session>();
let running = false;

addEventListener('message', ({ data }: MessageEvent<HighlightRequest>) => {
  if (data.kind === 'close') {
    sessions.delete(data.session);
    return;
  }
  let session = sessions.get(data.session);
  if (session === undefined) {
    session = { tokenizer: new LineTokenizer(data.language), waiting: [], next: 0, spentMs: 0 };
    sessions.set(data.session, session);
  }
  for (const line of data.lines) session.waiting.push(line);
  if (!running) void run();
});

async function run(): Promise<void> {
  running = true;
  for (let worked = true; worked;) {
    worked = false;
    for (const [id, session] of sessions) {
      if (session.waiting.length === 0) continue;
      worked = true;
      await slice(id, session);
      // Lets messages in, which a promise alone would not.
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
  running = false;
}

async function slice(id: number, session: Session): Promise<void> {
  const asked = session.waiting.splice(0, SLICE_LINES);
  const begun = performance.now();
  let lines: Run[][] = [];
  if (session.spentMs < SESSION_LIMIT_MS) {
    try {
      lines = await session.tokenizer.next(asked);
      session.spentMs += performance.now() - begun;
    } catch {
      // No such grammar file, or a line it fails on. What is not coloured stays as the page shows it already: plain.
      session.spentMs = Infinity;
    }
  }
  if (!sessions.has(id)) return;
  postMessage({ session: id, from: session.next, lines, given: asked.length } satisfies HighlightAnswer);
  session.next += asked.length;
}

// The page's side of code highlighting. Code is shown plain at once and gets its colours when the worker has them;
// without a worker (or when it fails) it stays plain, which loses nothing but colours.
import { languageOf } from './languages';
import type { HighlightAnswer, HighlightRequest, Run } from './tokens';

/** Called with lines `from…` of a code block, coloured. Lines come in order. */
export type OnLines = (from: number, lines: Run[][]) => void;

/** The coloured lines of one code block, which may still grow. */
export interface HighlightSession {
  /** More lines, complete ones. */
  append(lines: string[]): void;
  /** Nothing more is wanted; what waits is dropped. */
  close(): void;
}

/** A worker that owes an answer for this long hangs in a pattern that never ends; the next block gets a new one. */
const HANGS_AFTER_MS = 30_000;

/** Undefined before it is needed; null when there can be none. */
let worker: Worker | null | undefined;
let lastSession = 0;
/** The open sessions, and how many lines each waits for. */
const sessions = new Map<number, { onLines: OnLines; owed: number }>();
let watchdog: ReturnType<typeof setTimeout> | undefined;

/** Begins to colour a code block, or null when its language is unknown or there is no worker. */
export function openHighlight(info: string, onLines: OnLines): HighlightSession | null {
  const language = languageOf(info);
  if (language === null) return null;
  const target = theWorker();
  if (target === null) return null;
  const id = ++lastSession;
  const ask = (request: HighlightRequest): void => target.postMessage(request);
  sessions.set(id, { onLines, owed: 0 });
  return {
    append(lines) {
      const session = sessions.get(id);
      // Its worker was given up.
      if (session === undefined) return;
      session.owed += lines.length;
      ask({ kind: 'append', session: id, language: language.id, lines });
      if (watchdog === undefined) watch();
    },
    close() {
      if (sessions.delete(id)) ask({ kind: 'close', session: id });
      watch();
    },
  };
}

function theWorker(): Worker | null {
  if (worker !== undefined) return worker;
  if (typeof Worker === 'undefined') return (worker = null);
  try {
    worker = new Worker(new URL('./highlight.worker.ts', import.meta.url), { type: 'module' });
  } catch {
    return (worker = null);
  }
  worker.addEventListener('message', ({ data }: MessageEvent<HighlightAnswer>) => {
    const session = sessions.get(data.session);
    if (session !== undefined) {
      session.owed -= data.given;
      session.onLines(data.from, data.lines);
    }
    watch();
  });
  // A script that does not load will not load the next time either.
  worker.addEventListener('error', () => giveUp(null));
  return worker;
}

/** Waits for the next sign of life, if one is due. */
function watch(): void {
  clearTimeout(watchdog);
  const isDue = [...sessions.values()].some(({ owed }) => owed > 0);
  watchdog = isDue ? setTimeout(() => giveUp(undefined), HANGS_AFTER_MS) : undefined;
}

function giveUp(next: null | undefined): void {
  clearTimeout(watchdog);
  watchdog = undefined;
  worker?.terminate();
  worker = next;
  sessions.clear();
}

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

let worker: Worker | null | undefined;
let lastSession = 0;
const listeners = new Map<number, OnLines>();

/** Begins to colour a code block, or null when its language is unknown or there is no worker. */
export function openHighlight(info: string, onLines: OnLines): HighlightSession | null {
  const language = languageOf(info);
  if (language === null) return null;
  const target = theWorker();
  if (target === null) return null;
  const session = ++lastSession;
  const ask = (request: HighlightRequest): void => target.postMessage(request);
  listeners.set(session, onLines);
  return {
    append: (lines) => ask({ kind: 'append', session, language: language.id, lines }),
    close: () => {
      listeners.delete(session);
      ask({ kind: 'close', session });
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
    listeners.get(data.session)?.(data.from, data.lines);
  });
  worker.addEventListener('error', () => {
    worker = null;
    listeners.clear();
  });
  return worker;
}

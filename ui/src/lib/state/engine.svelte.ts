// The engine's latest picture of itself. The engine counts and this keeps: at most ten pictures a second are shown, and
// each owner of pages keeps its look from picture to picture.
import { snapshot } from '../api';
import type { Snapshot } from '../bindings';
import { looksOf, type Looks } from '../panel/looks';
import { refusalOf } from '../panel/views';

const SHOW_EVERY_MS = 100;

/** What the engine shows of itself. */
export class Engine {
  /** Null while no model is loaded. */
  snapshot = $state.raw<Snapshot | null>(null);
  /** How each owner of pages is drawn. */
  looks = $state.raw<Looks>(new Map());
  /** Why new work would be refused now; the figures in it are of when that began. */
  refusal = $state<string | null>(null);
  #latest: Snapshot | null = null;
  #hasBeenTold = false;
  #shownAt = -Infinity;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Asks for a first picture, unless one comes by itself before the answer. Without an answer the next one will do. */
  async ask(): Promise<void> {
    const first = await snapshot().catch(() => null);
    if (!this.#hasBeenTold) this.take(first);
  }

  /** Takes a picture; null when the model is gone. */
  take(picture: Snapshot | null): void {
    this.#hasBeenTold = true;
    this.#latest = picture;
    const wait = this.#shownAt + SHOW_EVERY_MS - performance.now();
    if (picture === null || wait <= 0) this.#show();
    else this.#timer ??= setTimeout(() => this.#show(), wait);
  }

  #show(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#shownAt = performance.now();
    this.snapshot = this.#latest;
    this.looks = looksOf(this.looks, this.#latest?.pool.owners ?? []);
    this.refusal = refusalOf(this.refusal, this.#latest?.memory.refusal ?? null);
  }
}

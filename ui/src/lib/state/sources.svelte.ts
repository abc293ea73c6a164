// What ended answers were made from. Asked for when an answer is drawn, and known from then on until it is made anew.
import { SvelteMap } from 'svelte/reactivity';
import { sources } from '../api';
import type { AnswerSources } from '../bindings';

/** Turns whose sources are remembered. */
const MOST = 400;

export class Sources {
  #known = new SvelteMap<number, AnswerSources>();
  /** What was asked for, also when it could not be told: asking again would tell no more. */
  #asked = new Set<number>();

  /** What an answer was made from, once it is known. */
  of(turn: number): AnswerSources | null {
    return this.#known.get(turn) ?? null;
  }

  /** Asks, where that was not done yet. */
  async ask(turn: number): Promise<void> {
    if (this.#asked.has(turn)) return;
    this.#asked.add(turn);
    try {
      const told = await sources(turn);
      // Forgotten meanwhile: the answer is another.
      if (!this.#asked.has(turn)) return;
      for (const oldest of this.#asked) {
        if (this.#asked.size <= MOST) break;
        this.forget(oldest);
      }
      this.#known.set(turn, told);
    } catch {
      // The answer stands without them.
    }
  }

  /** The answer is made anew, or was just now. */
  forget(turn: number): void {
    this.#asked.delete(turn);
    this.#known.delete(turn);
  }
}

// The window's tokens for the next prompt of the chat that is shown. The program counts; this asks at the right times
// and drops answers that came too late.
import { contextUse } from '../api';
import type { Asked, ContextUse } from '../bindings';

const ASK_AFTER_MS = 250;

/** What the next prompt takes of the window, and how long the draft is. */
export class Meter {
  /** Null while no model is loaded. */
  use = $state.raw<ContextUse | null>(null);
  /** Tokens of what is typed; null while nobody can count. */
  draftTokens = $state<number | null>(0);
  #asked = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Asks now. */
  async refresh(chat: number | null, draft: string, asked: Asked): Promise<void> {
    this.#cancel();
    const turn = ++this.#asked;
    try {
      const use = await contextUse(chat, draft, asked);
      if (turn !== this.#asked) return;
      this.use = use;
      this.draftTokens = draft === '' ? 0 : (use?.typed ?? null);
    } catch {
      // Counting is a service of its own: when it fails the panel shows nothing, and sending says what is wrong.
      if (turn !== this.#asked) return;
      this.use = null;
      this.draftTokens = null;
    }
  }

  /** Asks when nothing more was typed for a moment. */
  refreshSoon(chat: number | null, draft: string, asked: Asked): void {
    this.#cancel();
    this.#timer = setTimeout(() => void this.refresh(chat, draft, asked), ASK_AFTER_MS);
  }

  #cancel(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

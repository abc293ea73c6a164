// Copies what a person asked for and says so for a moment.
import { conversationStrings } from '../strings.conversation';

const SHOWN_MS = 2_000;

/** Puts text on the clipboard; whether it worked. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** A copy button's state: what it says after it was pressed, for a moment. */
export class CopyState {
  /** What happened, for the button and for screen readers; empty at rest. */
  message = $state('');
  #timer: ReturnType<typeof setTimeout> | undefined;

  async copy(text: string): Promise<void> {
    const ok = await copyText(text);
    this.message = ok ? conversationStrings.copied : conversationStrings.copyFailed;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.message = ''), SHOWN_MS);
  }

  /** Call when the button goes. */
  dispose(): void {
    clearTimeout(this.#timer);
  }
}

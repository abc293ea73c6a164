// What is typed and not sent, for the chat that is shown. Saved a moment after the last key and whenever the chat or the
// window is left. What this page has typed wins over what the program knew when the list was read.
import { setDraft } from '../api';

const SAVE_AFTER_MS = 300;

/** The draft in the composer and the ones that were left in other chats. */
export class Drafts {
  text = $state('');
  #chat: number | null = null;
  #typed = new Map<number | null, string>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #onFailure: (error: unknown) => void;

  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  /** Shows a chat's draft; `stored` is what the program knows of it. */
  show(chat: number | null, stored: string): void {
    this.#chat = chat;
    this.text = this.#typed.get(chat) ?? stored;
  }

  /** Takes what was typed, to be saved soon. */
  typed(text: string): void {
    this.text = text;
    this.#typed.set(this.#chat, text);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), SAVE_AFTER_MS);
  }

  /** Saves what is not saved. Never fails: what could not be saved is still here. */
  async flush(): Promise<void> {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    await this.#save(this.#chat, this.text);
  }

  /** Empties the composer for a message that is being sent. */
  take(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#typed.set(this.#chat, '');
    this.text = '';
  }

  /** The message was sent from this chat: its stored draft goes as well. */
  async sent(chat: number | null): Promise<void> {
    const text = this.#typed.get(chat) ?? '';
    if (text === '') await this.#save(chat, '');
  }

  /** Brings back a message that could not be sent, before whatever was typed since. */
  giveBack(chat: number | null, message: string): void {
    const since = this.#typed.get(chat) ?? '';
    const text = since === '' || since === message ? message : `${message}\n\n${since}`;
    this.#typed.set(chat, text);
    if (chat === this.#chat) this.typed(text);
    else void this.#save(chat, text);
  }

  async #save(chat: number | null, text: string): Promise<void> {
    try {
      await setDraft(chat, text);
    } catch (error) {
      this.#onFailure(error);
    }
  }
}

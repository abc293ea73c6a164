// The settings: shown as soon as they change, saved one after the other, taken back when the program refuses them.
import { messageOf, saveSettings } from '../api';
import type { Settings } from '../bindings';

/** The settings, and why the last change was not saved. */
export class SettingsState {
  value: Settings;
  /** Why the last change was not saved. */
  error: string | null;
  #saved: Settings;
  readonly #onSaved: () => void;
  #queue: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** `onSaved` is told after every change that was saved. */
  constructor(settings: Settings, onSaved: () => void = () => {}) {
    this.#onSaved = onSaved;
    this.value = $state.raw(settings);
    this.error = $state(null);
    this.#saved = settings;
  }

  /** Changes some settings; whether they were saved. */
  async save(change: Partial<Settings>): Promise<boolean> {
    this.value = { ...this.value, ...change };
    this.#waiting += 1;
    const saved = this.#queue.then(() => this.#store(change));
    this.#queue = saved;
    return saved;
  }

  async #store(change: Partial<Settings>): Promise<boolean> {
    try {
      this.#saved = await saveSettings({ ...this.#saved, ...change });
      this.error = null;
      this.#onSaved();
      return true;
    } catch (error) {
      this.error = messageOf(error);
      return false;
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.value = this.#saved;
    }
  }
}

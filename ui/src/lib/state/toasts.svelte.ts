// Short messages at the edge of the window. Each stays for a while unless it is being read: time stands still while the
// pointer or the focus is on any of them.

/** Something a person can do about a toast, such as undo. */
export type ToastAction = { label: string; run: () => void };

/** A message as it is shown. */
export type Toast = { id: number; kind: 'info' | 'error'; message: string; action: ToastAction | null };

/** What a message may ask for. `lifeMs` null: until dismissed. */
export type ToastOptions = { action?: ToastAction; lifeMs?: number | null };

type Timer = { leftMs: number; since: number; handle: ReturnType<typeof setTimeout> | null };

const INFO_MS = 6_000;
const ERROR_MS = 15_000;
/** More than this many at once cover the page; the oldest goes. */
const MOST = 4;

/** The messages on show, oldest first. */
export class Toasts {
  shown = $state.raw<readonly Toast[]>([]);
  #nextId = 1;
  #timers = new Map<number, Timer>();
  #held = false;

  /** Shows a message. */
  info(message: string, options: ToastOptions = {}): number {
    return this.#add('info', message, options.action ?? null, options.lifeMs ?? INFO_MS, options);
  }

  /** Shows what went wrong; the same failure is not shown twice at once. */
  error(message: string, options: ToastOptions = {}): number {
    const same = this.shown.find((toast) => toast.kind === 'error' && toast.message === message);
    if (same !== undefined) this.dismiss(same.id);
    return this.#add('error', message, options.action ?? null, options.lifeMs ?? ERROR_MS, options);
  }

  /** Takes a message away. */
  dismiss(id: number): void {
    const timer = this.#timers.get(id);
    if (timer?.handle != null) clearTimeout(timer.handle);
    this.#timers.delete(id);
    this.shown = this.shown.filter((toast) => toast.id !== id);
    if (this.shown.length === 0) this.#held = false;
  }

  /** Stops the time while somebody reads. */
  hold(): void {
    if (this.#held) return;
    this.#held = true;
    for (const timer of this.#timers.values()) {
      if (timer.handle !== null) clearTimeout(timer.handle);
      timer.handle = null;
      timer.leftMs -= Date.now() - timer.since;
    }
  }

  /** Lets the time go on. */
  release(): void {
    if (!this.#held) return;
    this.#held = false;
    for (const id of this.#timers.keys()) this.#run(id);
  }

  #add(
    kind: Toast['kind'],
    message: string,
    action: ToastAction | null,
    lifeMs: number,
    options: ToastOptions,
  ): number {
    const id = this.#nextId++;
    const [oldest] = this.shown;
    if (this.shown.length >= MOST && oldest !== undefined) this.dismiss(oldest.id);
    this.shown = [...this.shown, { id, kind, message, action }];
    if (options.lifeMs !== null) {
      this.#timers.set(id, { leftMs: lifeMs, since: 0, handle: null });
      if (!this.#held) this.#run(id);
    }
    return id;
  }

  #run(id: number): void {
    const timer = this.#timers.get(id);
    if (timer === undefined) return;
    timer.since = Date.now();
    // Something that was held at its very end still shows for a moment.
    timer.handle = setTimeout(() => this.dismiss(id), Math.max(timer.leftMs, 1_000));
  }
}

// Which folders are closed: a habit of this window, kept by the web view and not worth a place among the settings.
const KEY = 'closed-folders';

/** The closed folders. */
export class Folds {
  closed = $state.raw<ReadonlySet<number>>(read());

  /** Opens or closes a folder. */
  toggle(folder: number): void {
    const closed = new Set(this.closed);
    if (!closed.delete(folder)) closed.add(folder);
    this.closed = closed;
    try {
      localStorage.setItem(KEY, JSON.stringify([...closed]));
    } catch {
      // Without storage the folders open again at the next start, and nothing else is lost.
    }
  }
}

function read(): ReadonlySet<number> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return new Set(Array.isArray(stored) ? stored.filter((id) => typeof id === 'number') : []);
  } catch {
    return new Set();
  }
}

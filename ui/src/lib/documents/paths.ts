// How the paths of documents are told.
import { strings } from '../strings';

/** The name of a dropped file whose copy lies at this path: `attached/` and a fingerprint, as the program's own folder has
 * them (`attach` in src-tauri/src/documents.rs). Null for every other path. */
export const nameOfCopy = (path: string): string | null =>
  /[\\/]attached[\\/][0-9a-f]{32}[\\/]([^\\/]+)$/.exec(path)?.[1] ?? null;

/** A path as it is shown: of a dropped file its name, and that it is a copy. */
export function shownPath(path: string): string {
  const copy = nameOfCopy(path);
  return copy === null ? path : strings.documents.keptCopy(copy);
}

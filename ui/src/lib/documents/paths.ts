// How the paths of documents are told.
import { strings } from '../strings';

/** Something that lies at a path, and whether that is the program's own copy of a dropped file. */
export type Located = { path: string; isCopy: boolean };

/** The last part of a path. */
export const nameOf = (path: string): string => path.split(/[\\/]/).at(-1) ?? path;

/** A path as it is shown: of a dropped file its name, and that it is a copy. */
export const shownPath = ({ path, isCopy }: Located): string =>
  isCopy ? strings.documents.keptCopy(nameOf(path)) : path;

// What stands inside the sentences of `strings.errors.de`: causes, steps, kinds of things, and what the system says. In German, by
// what it is in English.
import { engineCauses } from './strings.causes.engine.de';
import { libraryCauses } from './strings.causes.library.de';
import type { Sentences } from './strings.errors.de';

/** What stands inside what the program says, in German. */
export const causes: Sentences = { ...engineCauses, ...libraryCauses };

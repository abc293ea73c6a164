// Sentences that the program around the page says itself: errors, notices, warnings. It says them in English, as the terminal
// does; here is what they are in German. `messages` finds a sentence among them, and a test holds them to what the program says.
import { appErrors } from './strings.errors.app.de';
import { engineErrors } from './strings.errors.engine.de';
import { libraryErrors } from './strings.errors.library.de';
import { skillErrors } from './strings.errors.skills.de';

/** German by English, with the same values in braces. */
export type Sentences = Readonly<Record<string, string>>;

/** What the program says, in German. */
export const germanErrors: Sentences = {
  ...engineErrors,
  ...libraryErrors,
  ...skillErrors,
  ...appErrors,
};

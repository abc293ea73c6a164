// The catalogue: all that a person reads or a screen reader says. The parts belong to the window, to the conversation and
// to what the panel says of the engine. Each part is in the page's language (see `language`); what is said is told by the
// English one, and `strings.*.de` says the same in German.
import { conversationStrings } from './strings.conversation';
import { documentStrings } from './strings.documents';
import { engineStrings } from './strings.engine';
import { inspectorStrings, keptStrings } from './strings.inspector';
import { modelStrings } from './strings.models';
import { shellStrings } from './strings.shell';
import { skillStrings } from './strings.skills';

export const strings = {
  ...shellStrings,
  conversation: conversationStrings,
  engine: engineStrings,
  inspector: inspectorStrings,
  kept: keptStrings,
  documents: documentStrings,
  skills: skillStrings,
  models: modelStrings,
};

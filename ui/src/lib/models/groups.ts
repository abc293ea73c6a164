// Where on its screen a model belongs, and which one answers.
import type { ModelShown, ModelState, Settings } from '../bindings';

/** A part of the screen of models. */
export type Group = 'here' | 'found' | 'known';

/** Models by group, in the order in which they came. One that was added and whose file is gone is still where it was. */
export function groupsOf(models: readonly ModelShown[]): Record<Group, ModelShown[]> {
  const groups: Record<Group, ModelShown[]> = { here: [], found: [], known: [] };
  for (const model of models) groups[groupOf(model)].push(model);
  return groups;
}

function groupOf({ origin, path }: ModelShown): Group {
  if (origin === 'found') return 'found';
  return origin === 'catalogue' && path === null ? 'known' : 'here';
}

/** Whether a model is the one that answers: the one chosen, or where none was chosen the one that is loaded. */
export const isInUse = ({ id, name }: ModelShown, chosen: string | null, loaded: ModelState): boolean =>
  chosen === null ? name === loaded.name : id === chosen;

/** The window that a model's bytes are told for. */
export function windowOf(model: ModelShown, settings: Settings): number | null {
  if (settings.contextTokens !== null) return settings.contextTokens;
  return model.contextTokens === null ? null : Math.min(model.contextTokens, 8_192);
}

// Who looks how on the map of pages: a colour and a pattern for each name, the same as long as the name is there.
import type { OwnerView } from '../bindings';

/** The looks there are, each with a colour `--owner-…` and a pattern of its own. `rest` is shared by all further ones. */
export const looks = ['1', '2', '3', '4', '5', '6', 'rest'] as const;

/** How an owner is drawn. */
export type Look = (typeof looks)[number];

/** The look of each name. */
export type Looks = ReadonlyMap<string, Look>;

const own = looks.filter((look) => look !== 'rest');

/** The looks of these owners: everyone keeps theirs, except that what ended gives way to what is active. */
export function looksOf(before: Looks, owners: OwnerView[]): Looks {
  const active = owners.filter((owner) => owner.is_active).map(({ name }) => name);
  const names = [...new Set([...active, ...owners.map(({ name }) => name)])];
  const next = new Map<string, Look>();
  for (const name of names) {
    const look = before.get(name);
    if (look !== undefined && look !== 'rest') next.set(name, look);
  }
  for (const name of names) {
    if (next.has(name)) continue;
    const taken = new Set(next.values());
    const free = own.find((look) => !taken.has(look));
    const yielding = active.includes(name)
      ? [...next.keys()].findLast((other) => !active.includes(other))
      : undefined;
    if (free !== undefined) {
      next.set(name, free);
    } else if (yielding !== undefined) {
      next.set(name, next.get(yielding) ?? 'rest');
      next.delete(yielding);
    }
  }
  for (const name of names) if (!next.has(name)) next.set(name, 'rest');
  const isSame = next.size === before.size && names.every((name) => before.get(name) === next.get(name));
  return isSame ? before : next;
}

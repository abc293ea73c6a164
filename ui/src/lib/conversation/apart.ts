// Telling files of one name apart by the folders they are in.

const partsOf = (path: string): string[] => path.split(/[/\\]/).filter((part) => part !== '');

/**
 * For each of these paths whose file name another one has, too: as much of its folder as tells them apart. The others, and paths that are
 * the same, need nothing.
 */
export function foldersApart(paths: Iterable<string>): Map<string, string> {
  const byName = new Map<string, Set<string>>();
  for (const path of paths) {
    const name = partsOf(path).at(-1) ?? '';
    byName.set(name, (byName.get(name) ?? new Set()).add(path));
  }
  const folders = new Map<string, string>();
  for (const same of byName.values()) {
    if (same.size < 2) continue;
    const all = Array.from(same, (path) => ({ path, folder: partsOf(path).slice(0, -1) }));
    for (const { path, folder } of all) {
      const others = all.filter((other) => other.path !== path).map((other) => other.folder);
      const end = (parts: string[], depth: number): string => parts.slice(-depth).join('/');
      let depth = 1;
      while (depth < folder.length && others.some((other) => end(other, depth) === end(folder, depth)))
        depth += 1;
      folders.set(path, end(folder, depth));
    }
  }
  return folders;
}

// The languages that code blocks are coloured in, by the names people and models write after a fence.

/** `id` names the grammar, `name` is what people read. */
export type Language = { id: string; name: string };

const TABLE: [id: string, name: string, ...aliases: string[]][] = [
  ['typescript', 'TypeScript', 'ts', 'mts', 'cts'],
  ['javascript', 'JavaScript', 'js', 'mjs', 'cjs', 'node'],
  ['tsx', 'TSX'],
  ['jsx', 'JSX'],
  ['json', 'JSON', 'jsonc', 'json5', 'jsonl'],
  ['html', 'HTML', 'htm', 'xhtml'],
  ['css', 'CSS'],
  ['svelte', 'Svelte'],
  ['vue', 'Vue'],
  ['python', 'Python', 'py', 'python3', 'py3'],
  ['rust', 'Rust', 'rs'],
  ['go', 'Go', 'golang'],
  ['java', 'Java'],
  ['kotlin', 'Kotlin', 'kt', 'kts'],
  ['swift', 'Swift'],
  ['c', 'C', 'h'],
  ['cpp', 'C++', 'c++', 'cc', 'cxx', 'hpp'],
  ['csharp', 'C#', 'c#', 'cs'],
  ['php', 'PHP'],
  ['ruby', 'Ruby', 'rb'],
  ['shellscript', 'Shell', 'bash', 'sh', 'shell', 'zsh', 'console', 'terminal'],
  ['sql', 'SQL', 'postgresql', 'mysql', 'sqlite'],
  ['yaml', 'YAML', 'yml'],
  ['toml', 'TOML'],
  ['markdown', 'Markdown', 'md'],
  ['diff', 'Diff', 'patch'],
  ['docker', 'Dockerfile', 'dockerfile'],
  ['xml', 'XML', 'svg'],
  ['lua', 'Lua'],
  ['r', 'R'],
];

const byName = new Map<string, Language>();
for (const [id, name, ...aliases] of TABLE) {
  for (const key of [id, ...aliases]) byName.set(key, { id, name });
}

/** What is written after a fence's opening marks, without attributes: "ts" of "ts {1,3} title=x". */
export const fenceWord = (info: string): string => /^[^\s{,:]*/.exec(info.trim())?.[0] ?? '';

/** The language behind a fence's info string, or null when it has no grammar here. */
export const languageOf = (info: string): Language | null =>
  byName.get(fenceWord(info).toLowerCase()) ?? null;

/** The name to show above code: the language's, or what was written when it is unknown (cut to a sane length). */
export const languageName = (info: string): string => languageOf(info)?.name ?? fenceWord(info).slice(0, 24);

/** Every grammar's id. */
export const languageIds: readonly string[] = TABLE.map(([id]) => id);

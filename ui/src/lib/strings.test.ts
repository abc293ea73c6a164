// Both catalogues, whatever language the page has.
import { expect, it } from 'vitest';
import { english as conversation } from './strings.conversation';
import { german as conversationDe } from './strings.conversation.de';
import { english as documents } from './strings.documents';
import { german as documentsDe } from './strings.documents.de';
import { english as engine } from './strings.engine';
import { german as engineDe } from './strings.engine.de';
import { english as inspector, englishKept as kept } from './strings.inspector';
import { german as inspectorDe, germanKept as keptDe } from './strings.inspector.de';
import { english as models } from './strings.models';
import { german as modelsDe } from './strings.models.de';
import { english as shell } from './strings.shell';
import { german as shellDe } from './strings.shell.de';
import { english as skills } from './strings.skills';
import { german as skillsDe } from './strings.skills.de';

const english = { conversation, documents, engine, inspector, kept, models, shell, skills };
const german = {
  conversation: conversationDe,
  documents: documentsDe,
  engine: engineDe,
  inspector: inspectorDe,
  kept: keptDe,
  models: modelsDe,
  shell: shellDe,
  skills: skillsDe,
};

/** What a function of the catalogue is called with, where it is not words and numbers. */
const samples: Record<string, unknown[]> = {
  'conversation.withSkills': [['a', 'b']],
  'documents.work': [{ at: 'reading', done: 1, total: 2, name: 'a' }],
  'documents.view.headings': [['a', 'b']],
  'engine.names': [['a', 'b']],
  'engine.pool.at': ['a', ['b']],
  'engine.pool.runs': [2, ['a', 'b'], 3],
  'inspector.timeLabel': ['a', ['b']],
  'models.fetched': [{ id: 'a', doneBytes: 1, totalBytes: 2, isEnded: false, trouble: null }],
};

/** Every word of a catalogue by its place in it; functions are called, once with ones and once with more. */
function words(catalogue: unknown, path = ''): Map<string, string> {
  if (typeof catalogue === 'string') return new Map([[path, catalogue]]);
  if (typeof catalogue === 'function') {
    const given = samples[path];
    const calls =
      given === undefined ? [1, 3].map((value) => Array<unknown>(catalogue.length).fill(value)) : [given];
    return new Map(calls.map((call, index) => [`${path}(${index})`, String(catalogue(...call))]));
  }
  const entries = Object.entries(catalogue as object);
  return new Map(
    entries.flatMap(([name, value]) => [...words(value, path === '' ? name : `${path}.${name}`)]),
  );
}

const [inEnglish, inGerman] = [words(english), words(german)];

it('German says all that English says, and nothing else', () => {
  expect([...inGerman.keys()].sort()).toEqual([...inEnglish.keys()].sort());
  for (const [path, text] of inGerman) {
    expect(text.includes('undefined') || text.includes('NaN'), path).toBe(false);
    expect(text === '', path).toBe(inEnglish.get(path) === '');
  }
});

/** Names, signs and units that are the same in both. */
const SAME = new Set([
  'Reprise',
  'Top-p',
  'MB',
  'Enter',
  'Esc',
  '@',
  '/',
  'Chat',
  'Chats',
  'Skill',
  'Skills',
  'Format',
  'System',
  'English',
  'Deutsch',
  'Tokens',
  'Material',
]);

/** What is made of sizes and of what is handed in. */
const SAME_PLACES = [
  'documents.size',
  'engine.pool.sizeOf',
  'engine.tiers.size',
  'engine.components.withBytes',
  'inspector.size',
  'inspector.duration',
  'models.size',
  'skills.fileSize',
  // The samples are in English, and so is the model that answers about them.
  'shell.empty.samples.document.text',
  'shell.empty.samples.skill.text',
];

it('hardly any words are the same in both', () => {
  const same = [...inGerman]
    .filter(([path, text]) => text === inEnglish.get(path) && /\p{L}{2}/u.test(text) && !SAME.has(text))
    .map(([path]) => path.replace(/\(\d\)$/, ''));
  expect([...new Set(same)].sort()).toEqual([...SAME_PLACES].sort());
});

it('German has no straight quotes and no English ones', () => {
  for (const [path, text] of inGerman) expect(/["”]|\.\.\./.test(text), path).toBe(false);
});

// Documents and skills: files dropped on the window and folders that are added are read, asked about and cited; what was read is used again in another
// order after a restart; skills are listed, looked at and chosen.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { answerAtMost, closeDialog, dark, drop, inspector, main, mention, newChat, openChat, openSettings, send, titles, untilFinished } from './chat.mjs';
import { Key, Machine, testOf, until } from './session.mjs';

const handbook = readFileSync(new URL('../../assets/handbook.md', import.meta.url), 'utf8');
/** Pages of a log, each long enough to be a passage or two of its own. */
const logs = ['Spring', 'Summer', 'Autumn', 'Winter'].map((season, number) => ({
  name: `${season.toLowerCase()}.md`,
  text: `# ${season} at the lighthouse\n\n${Array.from(
    { length: 9 },
    (_, day) =>
      `On day ${day + 1} of ${season.toLowerCase()} the keeper wrote about ship number ${(number * 31 + day * 7) % 90}, cleaned the lamp, and counted ${day + 2 + number} gulls on the north wall.`,
  ).join(' ')}\n`,
}));

let machine;
const test = testOf(() => machine);
before(async () => {
  machine = await Machine.begin();
  await machine.open();
});
after(() => machine?.end());

const shown = (id) => machine.all(`[data-testid="${id}"]`);
const number = (text) => Number(text.replaceAll(/\D/g, ''));

/** What a reader sees of the last of them; the driver's own way to a text misses parts of some. */
const textOf = (id) =>
  until(() => machine.run(`return [...document.querySelectorAll('[data-testid="' + arguments[0] + '"]')].at(-1)?.innerText`, id), id);

/** Asks, waits for the whole answer, and gives the figures of its footer. */
async function askFor(text) {
  const before = (await machine.allByRole('button', /Show how this prompt was read/)).length;
  await send(machine, text);
  await until(
    async () => (await machine.allByRole('button', /Show how this prompt was read/)).length > before,
    `an answer to ${text}`,
  );
  await untilFinished(machine);
  const line = await machine.run('return arguments[0].innerText', await machine.last('button', /Show how this prompt was read/));
  const article = await machine.run(`return [...document.querySelectorAll('article')].at(-1).innerText`);
  const first = /([\d.,]+) (ms|s) to first token/.exec(article);
  const prompt = /(?:of )?([\d,]+) prompt tokens?/.exec(line);
  const reused = /([\d,]+) of [\d,]+ prompt/.exec(line);
  return {
    firstMs: Number(first[1].replaceAll(',', '')) * (first[2] === 's' ? 1000 : 1),
    prompt: number(prompt[1]),
    reused: reused === null ? 0 : number(reused[1]),
    article,
  };
}

/** Chooses in a group of the settings. */
async function choose(group, value) {
  const chosen = () =>
    machine.run(
      `const label = [...document.querySelectorAll('[role=radiogroup]')].find(
         (one) => document.getElementById(one.getAttribute('aria-labelledby'))?.innerText === arguments[0]);
       const radio = label?.querySelector('input[value="' + arguments[1] + '"]');
       if (radio && !radio.checked) radio.click();
       return radio?.checked ?? false;`,
      group,
      value,
    );
  await until(chosen, `${value} for ${group}`);
}

test('a dropped file is read, asked about, and the answer leads to its passage', async () => {
  await until(async () => /is ready on this machine/.test(await main(machine)), 'the model to be ready');
  await answerAtMost(machine, 24);
  // An idle engine must not read before the first question here: what is measured is reading against using again.
  await openSettings(machine, 'Reuse');
  await choose('Read ahead', 'off');
  await closeDialog(machine);
  await drop(machine, [{ name: 'handbook.md', text: handbook }]);
  await until(async () => /handbook\.md/.test(await textOf('composer-chip')), 'the file as a chip');
  await askFor('Who is the nearest doctor?');
  const line = await textOf('sources-line');
  assert.match(line, /passage/i);
  await machine.picture('chat-document-light');
  await machine.run(`document.querySelector('[data-testid="sources-line"] button').click()`);
  const link = await until(
    async () => (await machine.allByRole('button', /^Show handbook\.md, lines/)).at(-1),
    'a passage to open',
  );
  await machine.run('arguments[0].click()', link);
  await until(async () => (await shown('document-view')).length === 1, 'the document');
  assert.ok((await textOf('cited-passage')).length > 40);
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('document-view');
  await closeDialog(machine);
});

test('what was picked for a message is there again after a restart', async () => {
  await mention(machine, '/', 'tidy-notes');
  await machine.close();
  await machine.open();
  await until(async () => (await titles(machine)).length === 1, 'the chat');
  await openChat(machine, (await titles(machine))[0]);
  const chips = () =>
    machine.run(`return [...document.querySelectorAll('[data-testid="composer-chip"]')].map((chip) => chip.innerText.trim()).join(' ')`);
  await until(async () => /tidy-notes[^]*handbook\.md/.test(await chips()), 'the skill and the document');
  assert.deepEqual(await machine.run(`return [...document.querySelectorAll('[role=alert]')].map((one) => one.innerText)`), []);
});

test('documents are listed with how far they are, filtered, and taken out for good', async () => {
  await machine.click('button', 'Documents');
  await until(async () => (await shown('documents-screen')).length === 1, 'the screen');
  const folder = join(machine.home, 'Lighthouse log');
  mkdirSync(folder);
  for (const { name, text } of logs) writeFileSync(join(folder, name), text);
  await machine.click('button', 'Add folder…');
  await machine.answerDialog('Select Folder', folder);
  await until(async () => (await shown('document-row')).length === 5, 'all documents');
  await until(async () => !/waiting|reading/i.test(await textOf('indexing-status')), 'all of them to be read');
  assert.deepEqual(await machine.violations(), []);
  assert.match(await textOf('documents-screen'), /handbook\.md, a copy of a dropped file/);
  await machine.run(`document.querySelectorAll('[data-toast] button').forEach((button) => button.click())`);
  await until(() => machine.run(`return document.querySelector('[data-toast]') === null`), 'what was told to be gone');
  await machine.picture('documents-light');
  await dark(machine);
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('documents-dark');
  await machine.run(`delete document.documentElement.dataset.theme`);
  await machine.press(Key.ESCAPE);
  await until(async () => (await shown('documents-screen')).length === 0, 'the chat again');
});

test('questions in another order after a restart are answered sooner', async () => {
  await newChat(machine);
  await mention(machine, '@', 'All documents');
  const questions = [
    'How many gulls were on the wall in spring?',
    'Which ship did the keeper write about in summer?',
    'What did the keeper clean in autumn?',
  ];
  const waits = [await askFor(questions[0])];
  await newChat(machine);
  await mention(machine, '@', 'All documents');
  waits.push(await askFor(questions[1]));
  await machine.close();
  await machine.open();
  await until(async () => /is ready on this machine/.test(await main(machine)), 'the model to be ready');
  for (const question of [questions[2], questions[0]]) {
    await newChat(machine);
    await mention(machine, '@', 'All documents');
    waits.push(await askFor(question));
  }
  const figures = waits.map(({ firstMs, prompt, reused }) => `${firstMs} ms (${reused} of ${prompt} reused)`);
  console.log(`to the first token: ${figures.join(', ')}`);
  assert.ok(waits[2].reused > waits[2].prompt / 2, figures.join(', '));
  assert.ok(waits[3].reused > waits[3].prompt / 2, figures.join(', '));
  await machine.picture('reuse-elsewhere');
});

test('the inspector shows what stood elsewhere before', async () => {
  await newChat(machine);
  // It was read behind other documents.
  await mention(machine, '@', 'winter.md');
  const { prompt, reused } = await askFor('What did the keeper count in winter?');
  assert.ok(reused > prompt / 2, `${reused} of ${prompt}`);
  await (await machine.last('button', /Show how this prompt was read/)).click();
  await inspector(machine);
  const figures = await machine.run(
    `return [...document.querySelectorAll('[data-kind] dd')].map((dd) => Number(dd.innerText.replaceAll(/\\D/g, '')));`,
  );
  const [, moved, recomputed] = figures;
  assert.ok(moved > 0 && recomputed > 0, figures.join(', '));
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('inspector-elsewhere-light');
  await dark(machine);
  await machine.picture('inspector-elsewhere-dark');
  await machine.run(`delete document.documentElement.dataset.theme`);
  await closeDialog(machine);
});

test('skills are listed with what they take, looked at, switched and chosen', async () => {
  await machine.click('button', 'Skills');
  await until(async () => (await shown('skills-screen')).length === 1, 'the screen');
  await until(async () => /tidy-notes/.test(await textOf('skills-screen')), 'the skill that comes with the program');
  await until(async () => /tokens/.test(await textOf('skills-screen')), 'what it takes');
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('skills-light');
  await machine.press(Key.ESCAPE);
  await newChat(machine);
  await mention(machine, '/', 'tidy-notes');
  const answer = await askFor('Tidy this: milk, call Ada, bread.');
  assert.ok(answer.prompt > 100, 'the skill is in the prompt');
  assert.match(answer.article, /tidy-notes/);
});

test('the window speaks German', async () => {
  await openSettings(machine, 'General');
  await choose('Language', 'german');
  await until(async () => (await machine.byRole('button', 'Neuer Chat')) !== undefined, 'the page in German');
  assert.equal(await machine.run('return document.documentElement.lang'), 'de');
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('german');
});

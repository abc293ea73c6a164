// A passage that an answer names opens in its document, at its place. The default model names none; the model this needs is on
// some machines only.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before } from 'node:test';
import { answerWith, closeDialog, drop, openChat, send, titles, untilFinished } from './chat.mjs';
import { beginLarge, PATIENCE_MS, skip, useLarge } from './large.mjs';
import { testOf, until } from './session.mjs';

const handbook = readFileSync(new URL('../../assets/handbook.md', import.meta.url), 'utf8');

let large;
let machine;
const test = testOf(() => machine);

before(async () => {
  if (skip) return;
  large = await beginLarge();
  machine = large.machine;
  await machine.open();
});
after(() => large?.end());

/** The marks in the last answer. */
const marks = () => machine.run(`return [...[...document.querySelectorAll('article')].at(-1).querySelectorAll('.md .citation')]`);

/** Opens the first mark of the last answer, and gives what the document's view shows as the passage. */
async function opened() {
  await machine.run('arguments[0].click()', (await marks())[0]);
  const passage = () => machine.run(`return document.querySelector('[data-testid="cited-passage"] [data-plain]')?.innerText`);
  return until(passage, 'the passage in its document');
}

test('a mark in the answer opens its passage in the document', { skip }, async () => {
  await useLarge(machine);
  await answerWith(machine, { Temperature: 0, 'Longest answer': 60 });
  await drop(machine, [{ name: 'handbook.md', text: handbook }]);
  await until(async () => (await machine.all('[data-testid="composer-chip"]')).length === 1, 'the file as a chip');
  await send(machine, 'Who is the nearest doctor? Name the passage.');
  await until(async () => (await marks()).length > 0, 'a mark in the answer', PATIENCE_MS);
  await untilFinished(machine, PATIENCE_MS);
  await machine.picture('cited-answer');
  const passage = await opened();
  assert.match(passage, /The nearest doctor is Dr\. Iwona Sauer/);
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('cited-passage');
  await closeDialog(machine);
});

test('it does so after a restart', { skip }, async () => {
  await until(async () => (await titles(machine)).length === 1, 'the chat');
  const [title] = await titles(machine);
  await machine.close();
  await machine.open();
  await openChat(machine, title);
  await until(async () => (await marks()).length > 0, 'the mark');
  assert.match(await opened(), /The nearest doctor is Dr\. Iwona Sauer/);
  await closeDialog(machine);
});

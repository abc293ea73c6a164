// Skills with scripts, and a model that calls tools: what wants to run asks first, runs only when it may, and what came of it
// stays with the answer. The default model calls no tools; the model this needs is on some machines only.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { answerWith, mention, newChat, openChat, send, titles, untilFinished } from './chat.mjs';
import { beginLarge, PATIENCE_MS, skip, useLarge } from './large.mjs';
import { testOf, until } from './session.mjs';

const SKILL = `---
name: ship-log
description: Looks up how many ships the lighthouse has counted. Use it whenever someone asks for the number of ships.
---
# Ship log

You do not know the number of ships. Call run_script with the skill \`ship-log\` and the script \`scripts/count.sh\`, and
answer with the number that it prints.
`;

let large;
let machine;
const test = testOf(() => machine);

before(async () => {
  if (skip) return;
  large = await beginLarge((person) => {
    const skill = join(person, '.agents/skills/ship-log');
    mkdirSync(join(skill, 'scripts'), { recursive: true });
    writeFileSync(join(skill, 'SKILL.md'), SKILL);
    writeFileSync(join(skill, 'scripts/count.sh'), `#!/bin/sh\necho "ships counted: 4711"\n`, { mode: 0o755 });
  });
  machine = large.machine;
  await machine.open();
});
after(() => large?.end());

/** What a reader sees of the last turn. */
const lastArticle = () => machine.run(`return [...document.querySelectorAll('article')].at(-1).innerText`);

/** Asks with the skill, and waits until something wants to run. */
async function askForShips() {
  await newChat(machine);
  await mention(machine, '/', 'ship-log');
  await send(machine, 'How many ships has the lighthouse counted?');
  const card = await until(() => machine.byRole('dialog', 'May this run?'), 'the question whether it may run', PATIENCE_MS);
  assert.match(await card.getText(), /ship-log wants to run:\s+scripts\/count\.sh/);
  assert.match(await lastArticle(), /Waiting for your decision/);
}

test('a script asks first, runs when it may, and the answer is made from what it wrote', { skip }, async () => {
  await useLarge(machine);
  await answerWith(machine, { Temperature: 0, 'Longest answer': 120 });
  await askForShips();
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('tools-consent');
  await machine.click('button', 'Allow once');
  await untilFinished(machine, PATIENCE_MS);
  const article = await lastArticle();
  assert.match(article, /Ran scripts\/count\.sh: done/);
  assert.match(article, /4711/);
  await machine.picture('tools-answer');
});

test('what it did is still told after a restart', { skip }, async () => {
  await until(async () => (await titles(machine)).length === 1, 'the chat');
  const [title] = await titles(machine);
  await machine.close();
  await machine.open();
  await openChat(machine, title);
  await until(async () => /Ran scripts\/count\.sh: done/.test(await lastArticle()), 'the steps');
});

test('what may not run does not, and the answer goes on without it', { skip }, async () => {
  await askForShips();
  await machine.click('button', 'Do not allow');
  await untilFinished(machine, PATIENCE_MS);
  const article = await lastArticle();
  assert.match(article, /Refused: /);
  assert.doesNotMatch(article, /4711/);
});

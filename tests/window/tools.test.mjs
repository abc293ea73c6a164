// Skills with scripts, and a model that calls tools: what wants to run asks first, runs only when it may, and what came of it
// stays with the answer. The default model calls no tools; the model this needs is on some machines only.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { answerAtMost, main, mention, newChat, openChat, send, titles, untilFinished } from './chat.mjs';
import { installedModels, Key, Machine, testOf, until } from './session.mjs';

const file = 'qwen2.5-coder-1.5b-instruct-q4_k_m.gguf';
const skip = existsSync(join(installedModels, file)) ? false : `${file} is not among the models of this machine`;

const SKILL = `---
name: ship-log
description: Looks up how many ships the lighthouse has counted. Use it whenever someone asks for the number of ships.
---
# Ship log

You do not know the number of ships. Call run_script with the skill \`ship-log\` and the script \`scripts/count.sh\`, and
answer with the number that it prints.
`;

/** The model is large: an answer with two calls takes a loaded machine minutes. */
const PATIENCE_MS = 180_000;

let machine;
let person;
const test = testOf(() => machine);

before(async () => {
  if (skip) return;
  person = mkdtempSync(join(tmpdir(), 'reprise-person-'));
  const models = join(person, 'models');
  mkdirSync(models);
  symlinkSync(join(installedModels, file), join(models, file));
  const skill = join(person, '.agents/skills/ship-log');
  mkdirSync(join(skill, 'scripts'), { recursive: true });
  writeFileSync(join(skill, 'SKILL.md'), SKILL);
  writeFileSync(join(skill, 'scripts/count.sh'), `#!/bin/sh\necho "ships counted: 4711"\n`, { mode: 0o755 });
  machine = await Machine.begin({ HOME: person, REPRISE_MODELS: models });
  await machine.open();
});
after(async () => {
  await machine?.end();
  if (person !== undefined) rmSync(person, { recursive: true, force: true, maxRetries: 10 });
});

/** What a reader sees of the last turn. */
const lastArticle = () => machine.run(`return [...document.querySelectorAll('article')].at(-1).innerText`);

/** Asks with the skill, and waits until something wants to run. */
async function askForShips() {
  await newChat(machine);
  await mention(machine, '/', 'ship-log');
  await send(machine, 'How many ships has the lighthouse counted?');
  const card = await until(() => machine.byRole('dialog', 'May this run?'), 'the question whether it may run', PATIENCE_MS);
  assert.match(await card.getText(), /ship-log wants to run:\s+scripts\/count\.sh/);
}

test('a script asks first, runs when it may, and the answer is made from what it wrote', { skip }, async () => {
  await machine.click('button', 'Models');
  await machine.run('arguments[0].click()', await machine.role('button', 'Use Qwen2.5-Coder 1.5B'));
  await machine.press(Key.ESCAPE);
  await until(async () => /is ready on this machine/.test(await main(machine)), 'the model to be ready');
  await answerAtMost(machine, 120);
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

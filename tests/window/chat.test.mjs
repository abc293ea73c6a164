// A chat in the real window with the real default model: from the first start to finding it again after a restart.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { answerAtMost, answers, ask, openSettings, paste, send, titles, type, untilFinished, untilLonger } from './chat.mjs';
import { Key, Machine, until } from './session.mjs';

let machine;
before(async () => {
  machine = await Machine.begin();
  await machine.open();
});
after(() => machine?.end());

const LONG = 'Write a long story about a lighthouse keeper, with many details about every day of the year.';

test('the first start shows a model that is ready and where to begin', async () => {
  await until(async () => /is ready on this machine/.test(await machine.text()), 'the model to be ready');
  await machine.role('textbox', 'Message');
  assert.equal((await titles(machine)).length, 0);
  await machine.picture('first-start');
});

test('an answer streams while it is written, and its figures follow', async () => {
  await answerAtMost(machine, 48);
  await send(machine, 'What is the capital of France?');
  const first = await untilLonger(machine, 0);
  const whole = await untilLonger(machine, first.length);
  assert.ok(whole.startsWith(first), `${JSON.stringify(first)} does not begin ${JSON.stringify(whole)}`);
  await untilFinished(machine);
  const footer = await until(async () => /to first token/.test(await machine.text('main')), 'the footer');
  assert.ok(footer);
  assert.match(await machine.text('main'), /tokens\/s/);
  await machine.picture('answer');
});

test('the next question reuses what was read', async () => {
  await ask(machine, 'And of Italy?');
  const text = await machine.text('main');
  assert.match(text, /[1-9]\d* of \d+ prompt tokens reused/);
});

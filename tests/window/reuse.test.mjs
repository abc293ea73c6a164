// What was read is used again: shown token by token behind an answer's footer, kept over a restart, and erased for good.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { answerAtMost, ask, closeDialog, inspector, main, openChat, openSettings, paste, titles, untilFinished } from './chat.mjs';
import { Key, Machine, testOf, until } from './session.mjs';

const TEXT = Array.from(
  { length: 60 },
  (_, day) => `Day ${day + 1}: the keeper climbed the tower, cleaned the lamp and wrote about ship number ${(day * 37) % 90}.`,
).join('\n');

let machine;
const test = testOf(() => machine);
before(async () => {
  machine = await Machine.begin();
  await machine.open();
});
after(() => machine?.end());

const number = (text) => Number(text.replaceAll(/\D/g, ''));

/** The figures of the last answer's footer, and the button that leads to the inspector. */
async function footer() {
  const button = await machine.last('button', /Show how this prompt was read/);
  const [, reused, prompt] = /([\d,]+) of ([\d,]+) prompt tokens? reused/.exec(await button.getText());
  return { button, reused: number(reused), prompt: number(prompt) };
}

/** What the inspector shows, once it is there. */
async function inspected() {
  await inspector(machine);
  return machine.run(`
    const kinds = {};
    for (const row of document.querySelectorAll('[data-kind]')) kinds[row.dataset.kind] = row.querySelector('dd').innerText;
    const tokens = {};
    for (const span of document.querySelectorAll('[data-how]')) {
      tokens[span.dataset.how] = (tokens[span.dataset.how] ?? 0) + Number(span.dataset.tokens);
    }
    return {
      kinds,
      tokens,
      sum: document.querySelector('[data-sum]').innerText,
      text: document.querySelector('[data-prompt]').textContent,
      chunks: document.querySelectorAll('[data-inspector] [data-chunk]').length,
      all: document.querySelector('[data-inspector]').innerText,
    };`);
}

/** Asks the program itself, as the page does. */
const invoke = (command, values) =>
  machine.driver.executeAsyncScript(
    `const [command, values, done] = arguments;
     window.__TAURI_INTERNALS__.invoke(command, values).then(done, (error) => done({ error }));`,
    command,
    values,
  );

async function lastAnswer() {
  const chat = await machine.run(`return Number(location.hash.replace('#chat-', ''))`);
  const { turns } = await invoke('open_chat', { chat });
  return turns.at(-1);
}

test('the inspector shows the figures of the footer and of the engine', async () => {
  await until(async () => /is ready on this machine/.test(await main(machine)), 'the model to be ready');
  await answerAtMost(machine, 24);
  const composer = await paste(machine, `${TEXT}\n\nWhat did the keeper do?`);
  await composer.sendKeys(Key.ENTER);
  await until(async () => /to first token/.test(await main(machine)), 'the first answer');
  await untilFinished(machine);
  await ask(machine, 'And on the second day?');
  const { button, reused, prompt } = await footer();
  assert.ok(reused > prompt / 2, `${reused} of ${prompt}`);
  await button.click();
  const shown = await inspected();
  const told = await invoke('inspect', { turn: (await lastAnswer()).id });
  assert.equal(number(shown.sum.split(' of ')[0]), reused);
  assert.equal(number(shown.sum.split(' of ')[1]), prompt);
  assert.equal(number(shown.kinds.prefix), told.prefixTokens);
  assert.equal(number(shown.kinds.moved) + number(shown.kinds.recomputed), told.movedTokens);
  assert.equal(told.prefixTokens + told.movedTokens, reused);
  assert.equal(told.promptTokens, prompt);
  assert.equal(told.isNow, false);
  const counted = Object.values(shown.tokens).reduce((sum, tokens) => sum + tokens, 0);
  assert.equal(counted, prompt, 'every token of the prompt is shown once');
  assert.equal((shown.tokens.pool ?? 0) + (shown.tokens.stored ?? 0), told.prefixTokens);
  assert.ok(shown.text.includes('Day 60: the keeper climbed') && shown.text.includes('And on the second day?'));
  assert.match(shown.all, /what was read before ended there/);
  assert.match(shown.all, /Compute/);
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('inspector-light');
  await machine.run(`document.documentElement.dataset.theme = 'dark'`);
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('inspector-dark');
  await machine.run(`delete document.documentElement.dataset.theme`);
  await closeDialog(machine);
});

test('a chat goes on at once after a restart, from the chunks on the disk', async () => {
  const [title] = await titles(machine);
  await machine.close();
  await machine.open();
  await until(async () => (await titles(machine)).length === 1, 'the chat in the list');
  await openChat(machine, title);
  await ask(machine, 'And on the third?');
  const { button, reused, prompt } = await footer();
  assert.ok(reused >= prompt * 0.9, `${reused} of ${prompt} after a restart`);
  await button.click();
  const shown = await inspected();
  assert.ok(shown.chunks > 0, 'the chunks behind it');
  assert.equal(shown.tokens.stored, reused);
  await machine.picture('inspector-restart');
  await closeDialog(machine);
});

test('of an answer of an earlier run there is what would be read now', async () => {
  const [line] = await machine.allByRole('button', /Show how this prompt was read/);
  await machine.run('arguments[0].click()', line);
  await inspected();
  assert.match(await machine.text('[data-inspector]'), /how it would be read now/);
  await closeDialog(machine);
});

test('the inspector and the terminal say the same of the same prompt', async () => {
  const [title] = await titles(machine);
  await machine.close();
  const { status, stdout, stderr } = machine.terminal(['explain', '--chat', title, '--json', '--quiet']);
  assert.equal(status, 0, stderr);
  const explained = JSON.parse(stdout);
  await machine.open();
  await until(async () => /is ready on this machine/.test(await main(machine)), 'the model to be ready');
  await openChat(machine, title);
  const told = await invoke('inspect', { turn: (await lastAnswer()).id });
  assert.equal(told.isNow, true);
  assert.equal(explained.spans.at(-1).to, told.promptTokens);
  assert.equal(explained.prefix_tokens, told.prefixTokens);
  assert.equal(explained.moved_tokens, told.movedTokens);
  assert.equal(explained.recomputed_tokens, told.recomputedTokens);
  assert.deepEqual(
    explained.calls.map(({ tokens }) => tokens),
    told.calls.map(({ tokens }) => tokens),
  );
  await (await footer()).button.click();
  const shown = await inspected();
  assert.equal(number(shown.sum.split(' of ')[0]), explained.prefix_tokens + explained.moved_tokens);
  assert.equal(number(shown.kinds.prefix), explained.prefix_tokens);
  await closeDialog(machine);
});

test('what is kept is listed by owner, and erased for good', async () => {
  await openSettings(machine, 'Reuse');
  await until(async () => (await machine.all('[data-owner^="chat:"]')).length === 1, 'the chat among the owners');
  await machine.click('button', /^Chat /);
  await until(async () => (await machine.all('[data-kept] [data-chunk]')).length > 0, 'its chunks');
  await machine.click('button', /^Pin: chunk/);
  await until(async () => /Pinned/.test(await machine.text('[data-kept]')), 'the pinned chunk');
  assert.deepEqual(await machine.violations(), []);
  await machine.run(`document.querySelector('[data-kept]').scrollIntoView()`);
  await machine.picture('kept');
  await machine.click('button', 'Erase everything kept');
  await machine.click('button', 'Erase');
  await until(async () => /Nothing is kept yet/.test(await machine.text('[data-kept]')), 'nothing to be kept');
  assert.deepEqual((await invoke('list_kept', {})).owners, []);
  await closeDialog(machine);
  await ask(machine, 'And on the fourth?');
  const text = await (await machine.last('button', /Show how this prompt was read/)).getText();
  assert.match(text, /none reused/);
});

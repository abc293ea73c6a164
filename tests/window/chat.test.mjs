// A chat in the real window with the real default model: from the first start to finding it again after a restart and
// after a crash. The tests build on each other, as a person's first hour does.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import {
  answerAtMost,
  answers,
  ask,
  chooseFromMenu,
  isBusy,
  main,
  newChat,
  openChat,
  openTitle,
  paste,
  questions,
  retype,
  send,
  stop,
  titles,
  type,
  untilFinished,
  untilLonger,
} from './chat.mjs';
import { Key, Machine, testOf, until } from './session.mjs';

const LONG_ANSWER = 'Write a very long story about a lighthouse keeper. Tell every day of the year in detail.';

let machine;
const test = testOf(() => machine);
before(async () => {
  machine = await Machine.begin();
  await machine.open();
});
after(() => machine?.end());

/** Whether a text begins with the first letters of what it was before: signs that were not closed yet may be gone. */
const beginsAlike = (text, before) => {
  const letters = (from) => from.replace(/[^\p{L}\p{N}]/gu, '');
  return letters(text).startsWith(letters(before.slice(0, 40)));
};

test('the first start shows a model that is ready, and where to begin', async () => {
  await until(async () => /SmolLM2 135M is ready on this machine/.test(await main(machine)), 'the model to be ready');
  assert.deepEqual(await titles(machine), []);
  await machine.picture('first-start');
});

test('an answer streams while it is written, and its figures follow', async () => {
  await answerAtMost(machine, 80);
  await until(async () => /Kept for the answer\s+80\b/.test(await machine.text()), 'the panel to follow the setting');
  await send(machine, 'What is a lighthouse?');
  const first = await untilLonger(machine, 0);
  const second = await untilLonger(machine, first.length);
  const third = await untilLonger(machine, second.length);
  assert.ok(second.startsWith(first.slice(0, -3)), 'what was written stays');
  assert.ok(third.length > second.length);
  await untilFinished(machine);
  await until(async () => /to first token/.test(await main(machine)), 'the figures');
  assert.match(await main(machine), /\d tokens\/s/);
  await machine.picture('answer-light');
});

test('the next question reads only what is new', async () => {
  await ask(machine, 'Who works there?');
  assert.match(await main(machine), /[1-9]\d* of \d+ prompt tokens reused/);
});

test('a chat gets a title, and it is the title of the window', async () => {
  await until(async () => (await titles(machine)).length === 1, 'the chat in the list');
  const [title] = await titles(machine);
  assert.ok(title.length > 0 && title.length < 61, title);
  assert.ok((await machine.driver.getTitle()).includes(title.replace(/…$/, '').slice(0, 20)));
});

test('titles are made beside the chat: its own beginning is still known', async () => {
  await ask(machine, 'And who pays for it?');
  const [, reused, total] = [...(await main(machine)).matchAll(/(\d+) of (\d+) prompt tokens reused/g)].at(-1);
  assert.ok(Number(reused) > Number(total) / 2, `${reused} of ${total}`);
});

test('another answer to the same question is a branch, and both can be seen', async () => {
  const before = (await answers(machine)).at(-1);
  await (await machine.last('button', 'Regenerate')).click();
  await until(async () => (await answers(machine)).at(-1) !== before, 'another answer');
  await untilFinished(machine);
  const anew = (await answers(machine)).at(-1);
  await until(async () => /2 \/ 2/.test(await main(machine)), 'the place among the branches');
  await (await machine.last('button', 'Previous version')).click();
  await until(async () => (await answers(machine)).at(-1) === before, 'the first answer');
  await (await machine.last('button', 'Next version')).click();
  await until(async () => (await answers(machine)).at(-1) === anew, 'the second answer');
});

test('an edited question is a branch with an answer of its own', async () => {
  await (await machine.last('button', 'Edit message')).click();
  const editor = await machine.role('textbox', 'Edit your message');
  await retype(machine, editor, 'And who paints it?', Key.ENTER);
  await until(async () => (await questions(machine)).at(-1) === 'And who paints it?', 'the edited question');
  await untilFinished(machine);
  assert.ok((await answers(machine)).at(-1).length > 0);
  await machine.picture('branches');
  await machine.click('button', 'Previous version'); // the first one: the question's
  await until(async () => (await questions(machine)).at(-1) === 'And who pays for it?', 'the question as it was');
});

test('an answer that is stopped keeps what was written, and can be continued', async () => {
  await answerAtMost(machine, 2000);
  await newChat(machine);
  await send(machine, LONG_ANSWER);
  await untilLonger(machine, 40);
  await stop(machine);
  await until(async () => /Stopped/.test(await main(machine)), 'the word that it was stopped');
  const stopped = (await answers(machine)).at(-1);
  assert.ok(stopped.length > 40);
  await machine.picture('stopped');
  await machine.click('button', 'Continue');
  const longer = await untilLonger(machine, stopped.length + 40);
  assert.ok(beginsAlike(longer, stopped), 'the beginning stays');
  await machine.press(Key.ESCAPE);
  await until(async () => !(await isBusy(machine)), 'Escape to stop the answer');
});

test('two chats are answered side by side, and stopping one leaves the other', async () => {
  const isAnswered = () =>
    machine.run(
      `return [...document.querySelectorAll('nav button[data-chat]')]
         .filter((row) => /Being answered/.test(row.textContent))
         .map((row) => row.querySelector('.truncate').innerText);`,
    );
  await newChat(machine);
  await send(machine, `By the sea. ${LONG_ANSWER}`);
  const first = await untilLonger(machine, 40);
  await newChat(machine);
  await send(machine, `In the hills. ${LONG_ANSWER}`);
  await untilLonger(machine, 40);
  assert.equal((await isAnswered()).length, 2, 'both chats are being answered');
  await machine.picture('side-by-side');
  await stop(machine);
  const [left, ...none] = await isAnswered();
  assert.deepEqual(none, []);
  assert.ok(left.startsWith('By the sea'), left);
  await openChat(machine, left);
  const longer = await untilLonger(machine, first.length + 40);
  assert.ok(beginsAlike(longer, first), 'what was written stays');
  await untilLonger(machine, longer.length);
  await stop(machine);
});

test('a long prompt shows how far it is read, and can be stopped there', async () => {
  await newChat(machine);
  const lines = Array.from({ length: 140 }, (_, line) => `Line ${line} of a long text about storms and ships at sea.`);
  const composer = await paste(machine, lines.join('\n'));
  await until(async () => /[2-5],\d{3} tokens/.test(await main(machine)), 'the count of what is typed');
  await composer.sendKeys(Key.ENTER);
  const progress = await machine.role('progressbar', 'Reading the prompt');
  await until(async () => /Reading [\d,]+ of [\d,]+ tokens – \d+/.test(await main(machine)), 'the time left');
  assert.ok(Number(await progress.getAttribute('max')) > 2000);
  await machine.picture('reading');
  await stop(machine);
  await until(async () => /Stopped/.test(await main(machine)), 'the word that it was stopped');
  // What was read is kept: the next prompt begins with the same text.
  await (await machine.last('button', 'Regenerate')).click();
  await untilLonger(machine, 0);
  await stop(machine);
  await until(async () => /[1-9][\d,]* of [\d,]+ prompt tokens reused/.test(await main(machine)), 'what was reused');
});

test('search finds a chat by what was said in it', async () => {
  await machine.mod('k');
  await (await machine.role('combobox', 'Search titles and contents')).sendKeys('who paints');
  const hit = await machine.role('option', /paints/);
  await machine.picture('search');
  await hit.click();
  await until(async () => (await questions(machine)).includes('What is a lighthouse?'), 'the chat that was found');
});

test('a chat is renamed, pinned and put into a folder', async () => {
  await chooseFromMenu(machine, await openTitle(machine), 'Rename');
  const field = await machine.role('textbox', /^Title of/);
  await retype(machine, field, 'About lighthouses', Key.ENTER);
  await until(async () => (await titles(machine)).includes('About lighthouses'), 'the new title');
  await chooseFromMenu(machine, 'About lighthouses', 'Pin');
  await until(async () => (await titles(machine))[0] === 'About lighthouses', 'the pinned chat first');
  const other = (await titles(machine)).at(-1);
  await chooseFromMenu(machine, other, 'Move to folder');
  await machine.click('menuitem', 'New folder…');
  await (await machine.role('textbox', 'Name')).sendKeys('Sea', Key.ENTER);
  await until(() => machine.run('return document.querySelector("section[aria-label=Sea] button[data-chat]") !== null'), 'the chat in the folder');
});

test('a chat is saved to a file', async () => {
  const file = join(machine.home, 'About lighthouses.md');
  await chooseFromMenu(machine, 'About lighthouses', 'Export as Markdown');
  await machine.answerDialog('Save File', file);
  await until(async () => /Saved to .*About lighthouses\.md/.test(await machine.text()), 'where it was saved');
  const saved = readFileSync(file, 'utf8');
  assert.match(saved, /About lighthouses/);
  assert.match(saved, /a lighthouse\?/);
});

test('a deleted chat can be brought back', async () => {
  const before = await titles(machine);
  await chooseFromMenu(machine, before.at(-1), 'Delete');
  await until(async () => (await titles(machine)).length === before.length - 1, 'the chat to be gone');
  await machine.picture('deleted');
  await machine.click('button', 'Undo');
  await until(async () => (await titles(machine)).length === before.length, 'the chat to be back');
  assert.deepEqual(await titles(machine), before);
});

test('a second start brings up the first window and ends', async () => {
  assert.equal(await machine.startAgain(), 0);
  assert.match(await machine.driver.getTitle(), /\w/, 'the first window is still there');
});

test('after a restart the chats are there, with what was typed and not sent', async () => {
  await openChat(machine, 'About lighthouses');
  // The last ones: what is far above the window is not on the page.
  const seen = async () => [(await questions(machine)).slice(-2), (await answers(machine)).slice(-2), await titles(machine)];
  const before = await seen();
  await type(machine, 'an unsent thought');
  await new Promise((wake) => setTimeout(wake, 500)); // drafts are kept a moment after the last key
  await machine.close();
  await machine.open();
  await openChat(machine, 'About lighthouses');
  await until(async () => (await questions(machine)).length > 0, 'the chat');
  assert.deepEqual(await seen(), before);
  const composer = await machine.role('textbox', 'Message');
  assert.equal(await composer.getAttribute('value'), 'an unsent thought');
  await retype(machine, composer, Key.BACK_SPACE);
});

test('a page that is loaded anew in the middle of an answer goes on with it', async () => {
  await newChat(machine);
  await send(machine, LONG_ANSWER);
  const seen = await untilLonger(machine, 40);
  await machine.run('setTimeout(() => location.reload())');
  const longer = await untilLonger(machine, seen.length + 60);
  assert.ok(beginsAlike(longer, seen), `${JSON.stringify(seen)} does not begin ${JSON.stringify(longer)}`);
  await stop(machine);
});

test('a crash in the middle of an answer loses nothing that was seen', async () => {
  await newChat(machine);
  await send(machine, `After the storm. ${LONG_ANSWER}`);
  const seen = await untilLonger(machine, 80);
  await machine.kill();
  await machine.open();
  await until(async () => /1 answer was cut short when Reprise last ended/.test(await machine.text()), 'the notice');
  const isCrashed = (title) => title.startsWith('After the storm');
  await openChat(machine, await until(async () => (await titles(machine)).find(isCrashed), 'the chat in the list'));
  const kept = await untilLonger(machine, 0);
  assert.ok(kept.startsWith(seen.slice(0, 80)), `${JSON.stringify(seen)} is not in ${JSON.stringify(kept)}`);
  assert.match(await main(machine), /Cut short when the program ended/);
  await machine.picture('after-a-crash');
  await machine.click('button', 'Continue');
  await untilLonger(machine, kept.length + 20);
  await stop(machine);
});

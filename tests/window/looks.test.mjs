// How the window looks and who can use it: themes, narrow windows, the keyboard alone, screen readers' view; answers with
// everything an answer can have; a chat of a thousand turns.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { after, before } from 'node:test';
import {
  answers,
  closeDialog,
  main,
  newChat,
  openChat,
  openSettings,
  questions,
  send,
  stop,
  titles,
} from './chat.mjs';
import { Key, Machine, testOf, until } from './session.mjs';

const TURNS = 1000;

let machine;
const test = testOf(() => machine);
before(async () => {
  machine = await Machine.begin();
  machine.fillChats(TURNS);
  await machine.open();
  await until(async () => /is ready/.test(await main(machine)), 'the model');
});
after(() => machine?.end());

async function theme(name) {
  await openSettings(machine, 'General');
  await machine.click('label', name);
  await until(
    async () => (await machine.run('return document.documentElement.dataset.theme')) === name.toLowerCase(),
    'the theme',
  );
  await closeDialog(machine);
}

/** Opens the panel's sections that are closed at first, or closes them again. */
async function toggleSections(isOpen) {
  await machine.run(
    `for (const button of document.querySelectorAll('[data-section] button[aria-expanded=${isOpen}]'))
       if (!/^(window|lanes|pool)$/.test(button.closest('section').dataset.section)) button.click();`,
  );
}

test('a chat of a thousand turns opens at its end, and the page holds a few of them only', async () => {
  await openChat(machine, 'A long chat');
  await until(async () => (await questions(machine)).at(-1) === 'And what needs care?', 'the last question');
  const count = await machine.run('return document.querySelectorAll("article").length');
  assert.ok(count > 1 && count < 60, `${count} turns are on the page`);
});

test('scrolling through it shows older turns and never more than a few', async () => {
  const scroller = await machine.find('.conversation .viewport');
  let highest = 0;
  for (let step = 0; step < 30; step += 1) {
    await machine.run('arguments[0].scrollBy(0, -1500)', scroller);
    await machine.driver.executeAsyncScript('requestAnimationFrame(() => requestAnimationFrame(arguments[0]))');
    highest = Math.max(highest, await machine.run('return document.querySelectorAll("article").length'));
  }
  assert.ok(highest < 60, `${highest} turns were on the page`);
  assert.notEqual((await questions(machine)).at(-1), 'And what needs care?');
  await machine.picture('long-chat');
  await machine.click('button', 'Jump to the latest');
  await until(async () => (await questions(machine)).at(-1) === 'And what needs care?', 'the end');
});

test('what answers bring is shown, and does nothing', async () => {
  const html = await machine.run('return [...document.querySelectorAll("article .md")].at(-1).innerHTML');
  assert.match(html, /<strong>中文。<\/strong>/);
  const alive = await machine.run(
    'return document.querySelectorAll("main :is(script, b, img, [onclick], a[href^=javascript])").length',
  );
  assert.equal(alive, 0);
  assert.equal(await machine.run('return document.title'), 'A long chat');
  const text = (await answers(machine)).at(-1);
  assert.match(text, /<b onclick="alert\(1\)">raw<\/b>/);
  assert.match(text, /It costs \$5 and not \$10\./);
  assert.ok(await machine.run('return document.querySelector("article:last-of-type .md .katex") !== null || document.querySelectorAll(".md .katex").length > 0'));
  await until(() => machine.find('.md .tok-keyword'), 'highlighted code');
  await machine.picture('markdown');
});

test('a link asks before it leaves', async () => {
  await (await machine.last('link', 'a link')).click();
  await machine.role('dialog', 'Open this link outside Reprise?');
  assert.match(await machine.text('[role=dialog], [role=alertdialog]'), /https:\/\/example\.org\/page/);
  await machine.picture('link');
  assert.deepEqual(await machine.violations(), []);
  await machine.click('button', 'Cancel');
  await until(async () => !(await machine.byRole('dialog')), 'the dialog to close');
  assert.equal(existsSync(machine.opened), false, 'nothing was opened');
  await (await machine.last('link', 'a link')).click();
  await machine.click('button', 'Open link');
  await until(() => existsSync(machine.opened), 'the browser to be asked');
  assert.equal(readFileSync(machine.opened, 'utf8'), 'https://example.org/page\n');
  assert.match(await machine.driver.getCurrentUrl(), /^tauri:\/\/localhost/);
});

for (const name of ['Light', 'Dark']) {
  test(`every screen is without violations of WCAG 2.2 AA, theme ${name.toLowerCase()}`, async () => {
    await theme(name);
    await openChat(machine, 'A long chat');
    assert.deepEqual(await machine.violations(), [], 'a chat');
    await machine.picture(`chat-${name.toLowerCase()}`);
    await toggleSections(false);
    await until(() => machine.find('[data-section=pool] svg[role=img]'), 'the map of the pool');
    assert.deepEqual(await machine.violations(), [], 'the context panel, every section open');
    await machine.run('document.querySelector("[data-panel]").scrollTo(0, 0)');
    await machine.picture(`panel-${name.toLowerCase()}`);
    await machine.run('document.querySelector("[data-panel]").scrollTo(0, 99999)');
    await machine.picture(`panel-end-${name.toLowerCase()}`);
    await toggleSections(true);
    await machine.mod('k');
    await machine.role('dialog', 'Search chats');
    assert.deepEqual(await machine.violations(), [], 'the search');
    await closeDialog(machine);
    for (const section of ['General', 'Model', 'Answers', 'Shortcuts', 'About']) {
      await openSettings(machine, section);
      assert.deepEqual(await machine.violations(), [], `the settings, ${section}`);
      await machine.picture(`settings-${section.toLowerCase()}-${name.toLowerCase()}`);
      await closeDialog(machine);
    }
    await machine.click('button', 'Options of “A long chat”');
    await machine.role('menuitem', 'Delete');
    assert.deepEqual(await machine.violations(), [], 'a menu');
    await machine.press(Key.ESCAPE);
    await newChat(machine);
    assert.deepEqual(await machine.violations(), [], 'a new chat');
    await machine.picture(`new-${name.toLowerCase()}`);
  });
}

test('the panel shows a request under way, and what it leaves in the pool', async () => {
  const lanes = () => machine.run('return document.querySelector("[data-section=lanes]").innerText');
  // Besides what the engine reads ahead while nobody asks.
  const owners = async () => {
    const all = await machine.run('return [...document.querySelectorAll("[data-section=pool] li")].map((one) => one.textContent)');
    return all.filter((text) => !text.includes('reading ahead')).length;
  };
  await newChat(machine);
  assert.match(await lanes(), /Nothing is being read or answered/);
  await send(machine, 'Write a long story about a lighthouse and its keeper.');
  await until(async () => /Answering, [\d,]+ tokens/.test(await lanes()), 'the request among the lanes');
  await until(async () => (await owners()) === 1, 'the owner of its pages');
  await machine.run('document.querySelector("[data-panel]").scrollTo(0, 300)');
  await machine.picture('panel-busy');
  assert.deepEqual(await machine.violations(), []);
  await stop(machine);
  await until(async () => /Nothing is being read or answered/.test(await lanes()), 'the lane to be free');
  await machine.click('button', /kept/);
  await machine.picture('panel-kept');
  assert.deepEqual(await machine.violations(), []);
});

test('everything works with the keyboard alone', async () => {
  await newChat(machine);
  const focused = () => machine.run('return document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.innerText ?? ""');
  // From the message back to the list, by Tab alone; the focus is always somewhere that has a name and can be seen.
  const seen = [];
  for (let step = 0; step < 25; step += 1) {
    await machine.press(Key.TAB);
    seen.push(await focused());
    const outline = await machine.run(`
      const element = document.activeElement;
      if (element === document.body) return true;
      const style = getComputedStyle(element);
      const box = element.closest('.composer, .box') ? getComputedStyle(element.closest('.composer, .box')) : style;
      return element.matches(':focus-visible') && element.getClientRects().length > 0;`);
    assert.ok(outline, `the focus on ${seen.at(-1)} can be seen`);
  }
  for (const name of ['New chat', 'Search', 'Settings']) assert.ok(seen.some((label) => label.includes(name)), `${name} is among ${seen.join(', ')}`);
  // The chat in the list is opened with Enter, its menu with the keyboard too.
  await machine.run('document.querySelector("nav button[data-chat]").focus()');
  await machine.press(Key.ENTER);
  await until(async () => (await questions(machine)).length > 0, 'the chat');
  await machine.mod('b');
  await until(async () => (await titles(machine)).length === 0 || !(await machine.byRole('button', 'New chat')), 'the sidebar to go');
  await machine.mod('b');
  await machine.role('button', 'New chat');
  await machine.mod('j');
  await until(async () => !/Context window/.test(await machine.text()), 'the panel to go');
  await machine.mod('j');
  await until(async () => /Context window/.test(await machine.text()), 'the panel to come back');
});

test('at 320 px everything is there and nothing is cut off', async () => {
  await openChat(machine, 'A long chat');
  await machine.zoomTo(320);
  const width = await machine.run('return innerWidth');
  assert.ok(width <= 330, `the page is ${width} px wide`);
  // Half faded in, its text is too faint to be read.
  const sheet = () =>
    until(() => machine.run('return document.querySelector("[data-sheet]").getAnimations().length === 0'), 'the sheet');
  const overflow = () => machine.run('return document.documentElement.scrollWidth - document.documentElement.clientWidth');
  await until(async () => (await questions(machine)).length > 0, 'the chat');
  assert.equal(await overflow(), 0);
  await machine.picture('narrow-chat');
  assert.deepEqual(await machine.violations(), []);
  // By key: the driver's clicks miss in a page that is enlarged.
  await machine.enter('button', /^Show sidebar/);
  await machine.role('button', 'New chat');
  await sheet();
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('narrow-sidebar');
  await machine.enter('button', 'New chat');
  await until(async () => (await questions(machine)).length === 0, 'a new chat');
  await machine.enter('button', /^Show context panel/);
  await machine.role('heading', 'KV pool');
  await sheet();
  assert.equal(await overflow(), 0);
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('narrow-panel');
  await machine.enter('button', 'Close');
  assert.equal(await overflow(), 0);
  await machine.role('textbox', 'Message');
  await machine.picture('narrow-new');
  await openSettings(machine);
  assert.equal(await overflow(), 0);
  await machine.picture('narrow-settings');
  await closeDialog(machine);
});

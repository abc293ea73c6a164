// What people do in a chat, as steps for the tests.

import { Key, until } from './session.mjs';

/** What a reader sees of the conversation, its header and the composer. */
export const main = (machine) => machine.text('main');

/** Types into the composer without sending. */
export async function type(machine, text) {
  const composer = await machine.role('textbox', 'Message');
  await composer.sendKeys(text);
  return composer;
}

/** Types in the place of what a field holds. */
export async function retype(machine, field, ...keys) {
  // Selected by the page: WebKit's driver does not let go of the modifier in a chord.
  await machine.run('arguments[0].focus(); arguments[0].select();', field);
  await field.sendKeys(...keys);
}

/** Puts a long text into the composer at once, as pasting does. */
export async function paste(machine, text) {
  const composer = await machine.role('textbox', 'Message');
  await machine.run(
    `const [field, text] = arguments;
     field.focus();
     document.execCommand('insertText', false, text);`,
    composer,
    text,
  );
  return composer;
}

/** Sends a message with the keyboard. */
export async function send(machine, text) {
  const composer = await type(machine, text);
  await composer.sendKeys(Key.ENTER);
}

const turns = (machine, label, text) =>
  machine.run(
    `return [...document.querySelectorAll('article')]
       .filter((article) => article.getAttribute('aria-label') === arguments[0])
       .map((article) => article.querySelector(arguments[1])?.innerText.trim() ?? '');`,
    label,
    text,
  );

/** The answers on the page, as a reader sees their text. */
export const answers = (machine) => turns(machine, 'Reprise', '.md');

/** The questions on the page. */
export const questions = (machine) => turns(machine, 'You', '[data-plain]');

/** Whether an answer is being made in the chat that is open. */
export const isBusy = async (machine) => Boolean(await machine.byRole('button', 'Stop the answer'));

/** Stops the answer with the button. */
export async function stop(machine) {
  await machine.click('button', 'Stop the answer');
  await until(async () => !(await isBusy(machine)), 'the answer to stop');
}

/** Waits until nothing is being written any more. */
export const untilFinished = (machine, patience) =>
  until(async () => !(await isBusy(machine)) && (await machine.byRole('button', 'Send')), 'the answer to end', patience);

/** Waits until the text of the last answer is longer than `length`, and gives it. */
export function untilLonger(machine, length) {
  return until(async () => {
    const last = (await answers(machine)).at(-1) ?? '';
    return last.length > length && last;
  }, `an answer longer than ${length} characters`);
}

/** Asks and waits for the whole answer. */
export async function ask(machine, text) {
  const before = (await questions(machine)).length;
  await send(machine, text);
  await until(async () => (await questions(machine)).length > before, 'the question in the chat');
  await untilFinished(machine);
  return (await answers(machine)).at(-1);
}

/** Begins a chat with the keyboard. */
export async function newChat(machine) {
  await machine.mod('n');
  await until(async () => (await questions(machine)).length === 0, 'an empty chat');
}

export async function openSettings(machine, section) {
  await machine.mod(',');
  await machine.role('dialog', 'Settings');
  if (section) await machine.click('tab', section);
}

/** Waits until the inspector shows a prompt. */
export const inspector = (machine) =>
  until(() => machine.run(`return document.querySelector('[data-sum]') !== null`), 'the inspector');

export async function closeDialog(machine) {
  await machine.press(Key.ESCAPE);
  await until(async () => !(await machine.byRole('dialog')), 'the dialog to close');
}

/** Changes settings of answers as a person does, by their labels. */
export async function answerWith(machine, fields) {
  await openSettings(machine, 'Answers');
  for (const [label, value] of Object.entries(fields)) {
    await retype(machine, await machine.role('textbox', label), String(value), Key.TAB);
  }
  await closeDialog(machine);
}

/** Short answers are quick ones. */
export const answerAtMost = (machine, tokens) => answerWith(machine, { 'Longest answer': tokens });

/** The titles in the sidebar, from top to bottom. */
export const titles = (machine) =>
  machine.run(
    `return [...document.querySelectorAll('nav button[data-chat]')].map((row) => row.querySelector('.truncate').innerText);`,
  );

/** Opens a chat of the sidebar, as soon as it is there. */
export async function openChat(machine, title) {
  const open = () =>
    machine.run(
      `const row = [...document.querySelectorAll('nav button[data-chat]')]
         .find((row) => row.querySelector('.truncate').innerText === arguments[0]);
       row?.click();
       return row !== undefined;`,
      title,
    );
  await until(open, `the chat ${title} in the list`);
  // Its row is the current one at the moment in which its turns take the place of another chat's.
  await until(
    async () => (await openTitle(machine)) === title && (await questions(machine)).length > 0,
    `the chat ${title}`,
  );
}

/** Opens a chat's menu in the sidebar and chooses from it. */
export async function chooseFromMenu(machine, title, item) {
  await machine.click('button', `Options of “${title}”`);
  await machine.click('menuitem', item);
}

/** The title of the chat that is open. */
export const openTitle = (machine) =>
  machine.run(
    `return document.querySelector('nav button[data-chat][aria-current=page] .truncate')?.innerText;`,
  );

/** Shows the page in dark, when its colours have changed. */
export const dark = (machine) =>
  machine.run(`
    document.documentElement.dataset.theme = 'dark';
    return new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))
      .then(() => Promise.all(document.getAnimations().map((one) => one.finished)))
      .then(() => true);`);

/** Chooses from the menu that this character opens. */
export async function mention(machine, character, option) {
  const composer = await machine.role('textbox', 'Message');
  await composer.sendKeys(character);
  const choose = () =>
    machine.run(
      `const options = [...document.querySelectorAll('[data-testid="mention-menu"] [role=option]')];
       const option = options.find((one) => one.innerText.includes(arguments[0]));
       option?.click();
       return option !== undefined;`,
      option,
    );
  await until(choose, `${option} in the menu of ${character}`);
  await until(async () => (await machine.all('[data-testid="composer-chip"]')).length > 0, 'a chip');
}

/** Drops files on the window, as a person does from a folder. */
export const drop = (machine, files) =>
  machine.run(
    `const transfer = new DataTransfer();
     for (const { name, text } of arguments[0]) transfer.items.add(new File([text], name));
     const target = document.querySelector('main');
     for (const kind of ['dragenter', 'dragover', 'drop']) {
       target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }));
     }`,
    files,
  );

// What people do in a chat, as steps for the tests.

import { By, Key, until } from './session.mjs';

/** Types into the composer without sending. */
export async function type(machine, text) {
  const composer = await machine.role('textbox', 'Message');
  await composer.sendKeys(text);
  return composer;
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

/** The answers on the page, as what a reader sees of their text. */
export function answers(machine) {
  return machine.run(
    `return [...document.querySelectorAll('article')]
       .filter((article) => article.getAttribute('aria-label') === 'Reprise')
       .map((article) => (article.querySelector('.md')?.innerText ?? '').trim());`,
  );
}

/** Waits until nothing is being written any more. */
export function untilFinished(machine) {
  return until(
    async () => !(await machine.byRole('button', 'Stop the answer')) && (await machine.byRole('button', 'Send')),
    'the answer to end',
  );
}

/** Waits until the text of the last answer is longer than `length`, and gives it. */
export function untilLonger(machine, length) {
  return until(async () => {
    const last = (await answers(machine)).at(-1) ?? '';
    return last.length > length && last;
  }, `an answer longer than ${length} characters`);
}

/** Asks and waits for the whole answer. */
export async function ask(machine, text) {
  await send(machine, text);
  await until(() => machine.byRole('button', 'Stop the answer'), 'the answer to begin');
  await untilFinished(machine);
  return (await answers(machine)).at(-1);
}

/** Settings as a person changes them, so that answers are short and quick. */
export async function answerAtMost(machine, tokens) {
  await openSettings(machine, 'Answers');
  const field = await machine.role('textbox', 'Longest answer');
  await field.sendKeys(Key.chord(Key.CONTROL, 'a'), String(tokens), Key.TAB);
  await machine.press(Key.ESCAPE);
  await until(async () => !(await machine.byRole('dialog')), 'the settings to close');
}

export async function openSettings(machine, section) {
  await machine.mod(',');
  await machine.role('dialog', 'Settings');
  if (section) await (await machine.role('tab', section)).click();
}

/** The titles in the sidebar. */
export async function titles(machine) {
  const rows = await machine.all('nav button[data-chat]');
  return Promise.all(rows.map((row) => row.getText()));
}

export { By };

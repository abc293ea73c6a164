import { cleanup, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api, emit } from '../../test/api';
import { faults, freshWindow, openPage } from '../../test/page';
import { summary } from '../../test/values';
import type { Asking } from '../bindings';

vi.mock('../api', async () => (await import('../../test/api')).api);

const asking = (change: Partial<Asking> = {}): Asking => ({
  id: 1,
  chat: 1,
  question: {
    words: 'The skill tidy-notes wants to run: count.py --all\nIn ~/skills/tidy-notes.',
    alwaysMeans: 'all scripts of this skill, until a file of it changes',
  },
  ...change,
});
const chats = [summary({ id: 1, title: 'Garden', updatedMs: 2 }), summary({ id: 2, title: 'Letter' })];

async function open(chat: string | null, questions: Asking[] = []) {
  const user = await openPage({ list: { chats, folders: [] }, questions });
  if (chat !== null) {
    await user.click(within(screen.getByRole('navigation')).getByRole('button', { name: chat }));
    await waitFor(() => expect(document.title).toBe(chat));
  }
  return user;
}
const card = () => screen.findByRole('alertdialog', { name: 'May this run?' });

beforeEach(freshWindow);
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

it('something that wants to run asks above the message, and takes the focus without a button', async () => {
  const user = await open('Garden');
  emit({ kind: 'asks', asking: asking() });
  const question = await card();
  expect(question).toHaveFocus();
  expect(question).toHaveTextContent(/wants to run: count\.py --all/);
  expect(question).toHaveTextContent(
    '“Always” means: all scripts of this skill, until a file of it changes.',
  );
  expect(await faults()).toEqual([]);
  // An Enter that was meant for something else decides nothing.
  await user.keyboard('{Enter}');
  expect(api.answerQuestion).not.toHaveBeenCalled();
  await user.click(within(question).getByRole('button', { name: 'Allow once' }));
  expect(api.answerQuestion).toHaveBeenCalledExactlyOnceWith(1, 'once');
  await waitFor(() => expect(screen.queryByTestId('consent-card')).toBeNull());
});

it('nobody who is typing is interrupted', async () => {
  const user = await open('Garden');
  const field = screen.getByRole('textbox', { name: 'Message' });
  await user.type(field, 'And');
  emit({ kind: 'asks', asking: asking() });
  await card();
  expect(field).toHaveFocus();
});

it.each([
  ['Always allow', 'always'],
  ['Do not allow', 'deny'],
] as const)('“%s” is %s', async (name, permission) => {
  const user = await open('Garden', [asking()]);
  await user.click(within(await card()).getByRole('button', { name }));
  expect(api.answerQuestion).toHaveBeenCalledExactlyOnceWith(1, permission);
});

it('a question goes when it needs no decision any more, and the next one comes', async () => {
  await open('Garden', [asking(), asking({ id: 2, question: { words: 'Second', alwaysMeans: 'x' } })]);
  expect(await card()).toHaveTextContent('One more question waits after this one.');
  emit({ kind: 'asked', id: 1 });
  await waitFor(async () => expect(await card()).toHaveTextContent('Second'));
  emit({ kind: 'asked', id: 2 });
  await waitFor(() => expect(screen.queryByTestId('consent-card')).toBeNull());
});

it('one of another chat is a line that leads there', async () => {
  const user = await open('Letter', [asking()]);
  expect(screen.queryByTestId('consent-card')).toBeNull();
  const line = screen.getByTestId('asks-elsewhere');
  expect(line).toHaveTextContent('“Garden” asks whether something may run.');
  await user.click(within(line).getByRole('button', { name: 'Open the chat' }));
  expect(await card()).toBeVisible();
});

it('on a screen the line leads to the chat under it', async () => {
  const user = await open('Garden', [asking()]);
  await user.click(within(screen.getByRole('navigation')).getByRole('button', { name: 'Skills' }));
  await user.click(await screen.findByRole('button', { name: 'Open the chat' }));
  expect(await card()).toBeVisible();
});

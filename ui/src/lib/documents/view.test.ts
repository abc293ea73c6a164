import { screen, waitFor, within } from '@testing-library/svelte';
import { expect, it, vi } from 'vitest';
import { api } from '../../test/api';
import { eachOnAPageWithTurns, faults, goTo, openPage } from '../../test/page';
import { aDocument, aPassage, chatOf, documentList, summary, turn } from '../../test/values';
import type { DocumentText, PassageShown } from '../bindings';
import { passagesAt, stretchAround } from './passages';

vi.mock('../api', async () => (await import('../../test/api')).api);

const passage = (index: number, change: Partial<PassageShown> = {}): PassageShown => ({
  place: `page ${index + 1}`,
  headings: [],
  text: `Passage ${index}.`,
  start: index * 100,
  end: index * 100 + 90,
  isOcr: false,
  ...change,
});
const text = (count: number): DocumentText => ({
  document: aDocument(),
  passages: Array.from({ length: count }, (_, index) => passage(index)),
});

/** A chat whose answer names a passage, and the document behind it. */
async function openCited(read: () => Promise<DocumentText>, start = 200, end = 290) {
  const chats = [summary({ title: 'Garden' })];
  const user = await openPage({ list: { chats, folders: [] } }, () => {
    api.openChat.mockResolvedValue(
      chatOf([
        turn({ id: 1, role: 'user', text: 'What grows?' }),
        turn({ id: 2, text: 'Ferns [garden.pdf, page 3].' }),
      ]),
    );
    api.sources.mockResolvedValue({
      text: 'Ferns [garden.pdf, page 3](passage:0).',
      given: [aPassage({ start, end })],
      cited: [0],
      steps: [],
    });
    api.readDocument.mockImplementation(read);
  });
  await user.click(within(screen.getByRole('navigation')).getByRole('button', { name: 'Garden' }));
  await user.click(await screen.findByRole('link', { name: 'garden.pdf, page 3' }));
  return { user, dialog: within(await screen.findByRole('dialog', { name: 'garden.pdf' })) };
}

eachOnAPageWithTurns();

it('a mark in an answer opens its document at the passage, which says that it is the one', async () => {
  const { user, dialog } = await openCited(async () => text(5));
  const cited = await dialog.findByTestId('cited-passage');
  expect(cited).toHaveTextContent(/The passage that was read for the answer.*page 3.*Passage 2\./s);
  await waitFor(() => expect(cited).toHaveFocus());
  expect(dialog.getAllByText(/^Passage \d/)).toHaveLength(5);
  expect(await faults()).toEqual([]);
  await user.click(dialog.getByRole('button', { name: 'Open file' }));
  expect(api.openDocument).toHaveBeenCalledExactlyOnceWith('/home/someone/papers/garden.pdf');
  await user.keyboard('{Escape}');
  await waitFor(() => expect(screen.queryByTestId('document-view')).toBeNull());
  expect(location.hash).toBe('#chat-1');
});

it('of thousands of passages those around the one that is meant are drawn, and more by request', async () => {
  const { user, dialog } = await openCited(async () => text(3000), 150_000, 150_090);
  await dialog.findByTestId('cited-passage');
  const places = () => dialog.getAllByText(/^Passage \d/).map((element) => element.textContent);
  expect([places().length, places()[0], places().at(-1)]).toEqual([121, 'Passage 1440.', 'Passage 1560.']);
  await user.click(dialog.getByRole('button', { name: 'Show 60 passages before' }));
  await user.click(dialog.getByRole('button', { name: 'Show 60 passages after' }));
  expect([places()[0], places().at(-1)]).toEqual(['Passage 1380.', 'Passage 1620.']);
});

it('a document that is gone leaves the passage as it was given', async () => {
  const { dialog } = await openCited(() => Promise.reject({ message: 'It is not in the index.' }));
  expect(await dialog.findByRole('alert')).toHaveTextContent(/It is not in the index\..*as it was given/);
  expect(dialog.getByTestId('cited-passage')).toHaveTextContent('Ferns grow.');
});

it('so does one that has changed', async () => {
  const { dialog } = await openCited(async () => text(2), 900, 990);
  expect(await dialog.findByRole('alert')).toHaveTextContent('The document has changed since');
  expect(dialog.getByTestId('cited-passage')).toHaveTextContent('Ferns grow.');
});

it('is opened from the list too, at its beginning', async () => {
  const user = await openPage({}, () => {
    api.listDocuments.mockResolvedValue(documentList({ documents: [aDocument()] }));
    api.readDocument.mockResolvedValue({
      document: aDocument(),
      passages: [passage(0, { headings: ['Shade', 'Ferns'], isOcr: true })],
    });
  });
  await goTo(user, 'Documents');
  await user.click(await screen.findByRole('button', { name: /^garden\.pdf/ }));
  const dialog = within(await screen.findByRole('dialog', { name: 'garden.pdf' }));
  expect(await dialog.findByText('Shade › Ferns')).toBeVisible();
  expect(dialog.getByText('recognised in a picture')).toBeVisible();
  expect(dialog.queryByTestId('cited-passage')).toBeNull();
});

it('a passage is found by its place, or else by the text that it shares', () => {
  const { passages } = text(4);
  expect(passagesAt(passages, { start: 100, end: 190 })).toEqual([1]);
  expect(passagesAt(passages, { start: 150, end: 210 })).toEqual([1, 2]);
  expect(passagesAt(passages, { start: 95, end: 100 })).toEqual([]);
  expect(stretchAround(0, 4)).toEqual({ from: 0, to: 4 });
});

import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api, emit } from '../../test/api';
import { faults, freshWindow, goTo, openPage } from '../../test/page';
import { aDocument, documentList, indexing, summary } from '../../test/values';
import type { DocumentList, SourceShown } from '../bindings';

vi.mock('../api', async () => (await import('../../test/api')).api);

const papers: SourceShown = {
  id: 1,
  path: '/home/someone/papers',
  isFolder: true,
  documents: 2,
  isThere: true,
  isCopy: false,
};
const letter: SourceShown = {
  id: 2,
  path: '/home/someone/letter.txt',
  isFolder: false,
  documents: 1,
  isThere: false,
  isCopy: false,
};
const full = (change: Partial<DocumentList> = {}): DocumentList =>
  documentList({
    sources: [papers, letter],
    documents: [
      aDocument({ id: 'd1', name: 'garden.pdf', isOcr: true, notes: ['Two pages were blank.'] }),
      aDocument({
        id: 'd2',
        name: 'tax.pdf',
        state: 'failed',
        trouble: 'It is encrypted.',
        needsPassword: true,
      }),
    ],
    total: 340,
    indexing: indexing({ ready: 328, failed: 12, passages: 5120, bytes: 3_000_000 }),
    notes: ['Scans are not read: the recogniser is missing.'],
    ...change,
  });

async function open(list: DocumentList = full()) {
  const user = await openPage({ list: { chats: [summary()], folders: [] } }, () =>
    api.listDocuments.mockResolvedValue(list),
  );
  await goTo(user, 'Documents');
  return user;
}

beforeEach(freshWindow);
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

describe('the screen of documents', () => {
  it('names a dropped file by its name and not by where its copy lies', async () => {
    const path = '/home/someone/reprise/attached/0f5af1c8a2218b7f3442a4f886a82dc0/handbook.md';
    await open(full({ sources: [{ ...letter, path, isCopy: true }] }));
    expect(await screen.findByText('handbook.md, a copy of a dropped file')).toBeVisible();
    expect(screen.queryByText(path)).toBeNull();
  });

  it('takes the place of the chat, and Escape leads back', async () => {
    const user = await open();
    expect(await screen.findByRole('heading', { level: 1, name: 'Documents' })).toBeVisible();
    expect(within(screen.getByRole('navigation')).getByRole('button', { name: 'Documents' })).toHaveAttribute(
      'aria-current',
      'page',
    );
    expect(screen.queryByRole('textbox', { name: 'Message' })).toBeNull();
    await user.keyboard('{Escape}');
    await waitFor(() => expect(screen.getByRole('textbox', { name: 'Message' })).toHaveFocus());
  });

  it('stands in nobody’s way', async () => {
    await open();
    await screen.findAllByTestId('document-row');
    expect(await faults()).toEqual([]);
  });

  it('says what it is for while nothing was added', async () => {
    const user = await open(documentList());
    expect(await screen.findByText(/Nothing leaves this machine/)).toBeVisible();
    expect(screen.queryByTestId('indexing-status')).toBeNull();
    api.addDocuments.mockResolvedValue(1);
    api.listDocuments.mockResolvedValue(full());
    await user.click(screen.getByRole('button', { name: 'Add folder…' }));
    expect(api.addDocuments).toHaveBeenCalledExactlyOnceWith(true);
    expect(await screen.findByText('Folder added.')).toBeVisible();
    expect(await screen.findAllByTestId('document-row')).toHaveLength(2);
  });

  it('names every document with what a person should know of it', async () => {
    await open();
    const [garden, tax] = await screen.findAllByTestId('document-row');
    expect(garden).toHaveTextContent(
      /garden\.pdf.*120 kB · 12 passages.*text recognised.*Two pages were blank\./s,
    );
    expect(tax).toHaveTextContent(/tax\.pdf.*without text.*It is encrypted\./s);
    expect(screen.getByText('The first 2 of 340 documents')).toBeVisible();
    expect(screen.getByText('Scans are not read: the recogniser is missing.')).toBeVisible();
    expect(screen.getByText('not there now')).toBeVisible();
  });

  it('says how far the index is, and stops and goes on', async () => {
    const user = await open();
    const status = await screen.findByTestId('indexing-status');
    expect(status).toHaveTextContent('328 documents · 5,120 passages · 12 without text · 3 MB on disk');
    const work = { at: 'reading' as const, done: 12, total: 340, name: 'a.pdf' };
    emit({ kind: 'documents', indexing: indexing({ ...full().indexing, work }) });
    expect(await within(status).findByText('Reading 12 of 340: a.pdf')).toBeVisible();
    expect(within(status).getByRole('progressbar')).toHaveAttribute('value', '12');
    await user.click(within(status).getByRole('button', { name: 'Stop' }));
    expect(api.stopIndexing).toHaveBeenCalledOnce();
    emit({ kind: 'documents', indexing: indexing({ work: { at: 'stopped' } }) });
    await user.click(await within(status).findByRole('button', { name: 'Continue' }));
    expect(api.updateDocuments).toHaveBeenCalledOnce();
    emit({ kind: 'documents', indexing: indexing({ work: { at: 'failed', message: 'The disk is full.' } }) });
    expect(await within(status).findByText('The disk is full.')).toBeVisible();
  });

  it('looks again when the index has other counts, a moment later and once', async () => {
    await open();
    await screen.findAllByTestId('document-row');
    api.listDocuments.mockClear();
    const now = full().indexing;
    emit({ kind: 'documents', indexing: { ...now, work: { at: 'looking', path: '/a' } } });
    emit({ kind: 'documents', indexing: { ...now, ready: 329 } });
    emit({ kind: 'documents', indexing: { ...now, ready: 330 } });
    expect(api.listDocuments).not.toHaveBeenCalled();
    await waitFor(() => expect(api.listDocuments).toHaveBeenCalledOnce(), { timeout: 2000 });
  });

  it('is narrowed by name, by state and by what was added', async () => {
    const user = await open();
    await user.type(await screen.findByRole('searchbox'), 'gar');
    await waitFor(() => expect(api.listDocuments).toHaveBeenLastCalledWith('gar', null, null));
    await user.click(screen.getByRole('button', { name: 'Without text' }));
    expect(api.listDocuments).toHaveBeenLastCalledWith('gar', null, 'failed');
    await user.click(screen.getByRole('button', { name: 'Show only what is in /home/someone/papers' }));
    expect(api.listDocuments).toHaveBeenLastCalledWith('gar', 1, 'failed');
    await user.click(screen.getByRole('button', { name: 'Show all' }));
    expect(api.listDocuments).toHaveBeenLastCalledWith('gar', null, 'failed');
    screen.getByRole('searchbox').focus();
    await user.keyboard('{Escape}');
    expect(api.listDocuments).toHaveBeenLastCalledWith('', null, 'failed');
    expect(screen.getByTestId('documents-screen')).toBeVisible();
  });

  it('takes a folder away only when the person is sure', async () => {
    const user = await open();
    const row = (await screen.findAllByTestId('source-row'))[0]!;
    await user.click(within(row).getByRole('button', { name: 'Remove /home/someone/papers' }));
    expect(row).toHaveTextContent('Everything that was read of it is erased, also the chunks kept on disk.');
    expect(within(row).getByRole('button', { name: 'Cancel' })).toHaveFocus();
    await user.click(within(row).getByRole('button', { name: 'Cancel' }));
    expect(api.removeSource).not.toHaveBeenCalled();
    await user.click(within(row).getByRole('button', { name: 'Remove /home/someone/papers' }));
    await user.click(within(row).getByRole('button', { name: 'Remove' }));
    expect(api.removeSource).toHaveBeenCalledExactlyOnceWith(1);
  });

  it('takes a password in place, and says when it is the wrong one', async () => {
    const user = await open();
    const field = await screen.findByLabelText('Password of tax.pdf');
    api.unlockDocument.mockRejectedValueOnce({ message: 'The password is wrong.' });
    await user.type(field, 'abc{Enter}');
    expect(await screen.findByText('The password is wrong.')).toBeVisible();
    expect(field).toHaveValue('abc');
    await user.type(field, 'd{Enter}');
    expect(api.unlockDocument).toHaveBeenLastCalledWith('d2', 'abcd');
    await waitFor(() => expect(field).toHaveValue(''));
  });

  it('takes files that are dropped on it', async () => {
    await open();
    const files = [new File(['x'], 'a.txt'), new File(['y'], 'b.txt')];
    await fireEvent.drop(document.body, { dataTransfer: { types: ['Files'], files } });
    await waitFor(() => expect(api.attachFile.mock.calls.map(([name]) => name)).toEqual(['a.txt', 'b.txt']));
    expect(await screen.findByText('2 files added.')).toBeVisible();
  });

  it('says why it shows nothing', async () => {
    const user = await openPage({}, () =>
      api.listDocuments.mockRejectedValue({ message: 'The index is broken.' }),
    );
    await goTo(user, 'Documents');
    expect(await screen.findByRole('alert')).toHaveTextContent('The index is broken.');
  });
});

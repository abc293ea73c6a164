// A window in German: what the program says in English is German where it is shown.
import { screen, waitFor, within } from '@testing-library/svelte';
import { expect, it, vi } from 'vitest';
import { api, emit } from '../test/api';
import { eachOnAPageWithTurns, openPage } from '../test/page';
import { settings, summary } from '../test/values';
import { aTurn, anAnswer } from './conversation/testing';

// The language is decided when the modules are loaded, which is before anything else here.
vi.hoisted(() => localStorage.setItem('reprise.language', 'german'));
vi.mock('./api', async () => (await import('../test/api')).api);

const chat = summary({ id: 1, title: 'Garten' });
const inGerman = { settings: settings({ language: 'german' }) };
const list = { chats: [chat], folders: [] };

eachOnAPageWithTurns();

it('an answer that failed, and a command', async () => {
  const turns = [
    aTurn({ id: 1 }),
    anAnswer({
      id: 2,
      parent: 1,
      text: '',
      state: 'failed',
      error: 'the engine has stopped; load the model again',
    }),
  ];
  const user = await openPage({ ...inGerman, list }, () => {
    api.openChat.mockResolvedValue({ summary: chat, turns });
    api.regenerate.mockRejectedValue({
      message: 'there is no turn with the number 2; it may have been deleted',
    });
  });
  await user.click(within(screen.getByRole('navigation')).getByRole('button', { name: 'Garten' }));
  await screen.findByText('Das Rechenwerk hat angehalten; laden Sie das Modell noch einmal');
  await user.click(screen.getByRole('button', { name: 'Noch einmal versuchen' }));
  await screen.findByText('Ein Beitrag mit der Nummer 2 ist nicht da; vielleicht inzwischen gelöscht');
});

it('a model that could not be loaded, and notices', async () => {
  await openPage({
    ...inGerman,
    notices: ['2 answers were cut short when Reprise last ended; the text they had is kept.'],
    model: {
      status: 'failed',
      name: 'a.gguf',
      error: '/a.gguf: cannot be read: Permission denied (os error 13)',
    },
  });
  await screen.findByText(/^2 Antworten wurden abgebrochen/);
  const failed = await screen.findAllByText(
    '/a.gguf kann nicht gelesen werden: keine Berechtigung (Systemfehler 13)',
  );
  expect(failed.length).toBeGreaterThan(0);
  emit({ kind: 'notice', message: 'The keyword index was damaged and was made anew.' });
  await waitFor(() => screen.getByText(/^Das Verzeichnis der Wörter war beschädigt/));
});

import { cleanup, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api, emit } from '../../test/api';
import { faults, freshWindow, goTo, openPage } from '../../test/page';
import { atRest } from '../../test/snapshots';
import { aModel, readyModel, settings } from '../../test/values';
import type { Fetching, ModelShown } from '../bindings';

vi.mock('../api', async () => (await import('../../test/api')).api);

const models: ModelShown[] = [
  aModel(),
  aModel({ id: 'mine', name: 'Mine', origin: 'added', path: '/mine.gguf', fit: 'tight', page: null }),
  aModel({
    id: '/lm/big.gguf',
    name: 'Big',
    origin: 'found',
    foundIn: 'LM Studio',
    path: '~/lm/big.gguf',
    fit: 'tooLarge',
  }),
  aModel({
    id: 'far',
    name: 'Far',
    path: null,
    quantisation: null,
    canFetch: true,
    fit: null,
    needsBytes: null,
  }),
];

async function open(list: ModelShown[] = models, model: string | null = 'small') {
  const user = await openPage({ settings: settings({ model }) }, () =>
    api.modelsShown.mockResolvedValue(list),
  );
  await goTo(user, 'Models');
  await screen.findAllByTestId('model-row');
  return user;
}
const row = (name: string) =>
  within(screen.getAllByTestId('model-row').find((one) => within(one).queryByText(name) !== null)!);
const fetching = (change: Partial<Fetching> = {}): Fetching => ({
  id: 'far',
  doneBytes: 100_000_000,
  totalBytes: 400_000_000,
  isEnded: false,
  trouble: null,
  ...change,
});

beforeEach(freshWindow);
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

describe('the screen of models', () => {
  it('groups them, and says what each takes and whether it fits', async () => {
    await open();
    expect(
      within(screen.getByTestId('models-screen'))
        .getAllByRole('heading')
        .map((heading) => heading.textContent),
    ).toEqual(['On this machine', 'Found in other programs', 'Known models']);
    const small = screen.getAllByTestId('model-row')[0]!;
    expect(small).toHaveTextContent(/Small.*In use.*Ready.*Fits/s);
    expect(small).toHaveTextContent(
      'Q4_1 · 610 MB · window of 32,768 tokens · takes about 1.2 GB with a window of 8,192',
    );
    expect(row('Mine').getByText('Tight')).toBeVisible();
    expect(row('Big').getByText('Too large')).toBeVisible();
    expect(row('Big').getByText(/in LM Studio/)).toBeVisible();
    expect(row('Far').getByText(/Licence: Apache-2\.0/)).toBeVisible();
    expect(await faults()).toEqual([]);
  });

  it('marks the model that is loaded where none was chosen', async () => {
    await open([aModel({ name: readyModel.name })], null);
    expect(screen.getByText('In use')).toBeVisible();
  });

  it('uses one that is here, and adds one of another program first', async () => {
    const user = await open();
    await user.click(row('Mine').getByRole('button', { name: 'Use Mine' }));
    await waitFor(() => expect(api.saveSettings).toHaveBeenLastCalledWith(settings({ model: 'mine' })));
    api.addFound.mockResolvedValue('big-1');
    await waitFor(() => expect(row('Big').getByRole('button', { name: 'Use Big' })).toBeEnabled());
    await user.click(row('Big').getByRole('button', { name: 'Use Big' }));
    expect(api.addFound).toHaveBeenCalledExactlyOnceWith('/lm/big.gguf');
    await waitFor(() => expect(api.saveSettings).toHaveBeenLastCalledWith(settings({ model: 'big-1' })));
  });

  it('forgets one that was added only when the person is sure', async () => {
    const user = await open();
    await user.click(row('Mine').getByRole('button', { name: 'Remove Mine' }));
    expect(row('Mine').getByText('It is taken off this list; its file stays.')).toBeVisible();
    expect(api.removeModel).not.toHaveBeenCalled();
    await user.click(row('Mine').getByRole('button', { name: 'Remove' }));
    expect(api.removeModel).toHaveBeenCalledExactlyOnceWith('mine');
    expect(row('Small').queryByRole('button', { name: /Remove/ })).toBeNull();
  });

  it('fetches one with its progress, and says why it did not come', async () => {
    const user = await open();
    await user.click(row('Far').getByRole('button', { name: 'Fetch Far' }));
    expect(api.fetchModel).toHaveBeenCalledExactlyOnceWith('far');
    emit({ kind: 'fetching', fetching: fetching() });
    expect(await row('Far').findByText('100 MB of 400 MB (25%)')).toBeVisible();
    await user.click(row('Far').getByRole('button', { name: 'Stop fetching Far' }));
    expect(api.stopFetching).toHaveBeenCalledExactlyOnceWith('far');
    emit({ kind: 'fetching', fetching: fetching({ isEnded: true, trouble: 'The network is gone.' }) });
    expect(await row('Far').findByRole('alert')).toHaveTextContent('The network is gone.');
    await user.click(row('Far').getByRole('button', { name: 'Fetch Far' }));
    emit({ kind: 'fetching', fetching: fetching() });
    api.modelsShown.mockResolvedValue([aModel({ id: 'far', name: 'Far' })]);
    emit({ kind: 'fetching', fetching: fetching({ isEnded: true }) });
    await waitFor(() => expect(screen.queryByRole('heading', { name: 'Known models' })).toBeNull());
  });

  it('asks before a page about one is opened', async () => {
    const user = await open();
    await user.click(row('Far').getByRole('button', { name: 'About it: Far' }));
    expect(await screen.findByTestId('link-address')).toHaveTextContent('https://example.org/small');
  });

  it('measures the one that is loaded, and shows how far that is', async () => {
    const user = await open();
    await user.click(row('Small').getByRole('button', { name: 'Measure its KV format' }));
    expect(api.tuneModel).toHaveBeenCalledOnce();
    emit({ kind: 'snapshot', snapshot: atRest({ tuning: { activity: 'Comparing formats', share: 0.4 } }) });
    expect(await row('Small').findByText('Comparing formats, 40%')).toBeVisible();
  });

  it('says why a file cannot be used, and offers no use of it', async () => {
    await open([aModel({ id: 'odd', name: 'Odd', origin: 'added', trouble: 'The file is cut short.' })]);
    expect(row('Odd').getByText('The file is cut short.')).toBeVisible();
    expect(row('Odd').queryByRole('button', { name: 'Use Odd' })).toBeNull();
  });
});

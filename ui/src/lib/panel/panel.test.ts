// The context panel over pictures of the engine, as a person and a screen reader meet it.
import { cleanup, render, screen, waitFor, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import axe from 'axe-core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import App from '../../App.svelte';
import { api, emit, resetApi } from '../../test/api';
import { atRest, busy, large, refusing } from '../../test/snapshots';
import type { Snapshot } from '../bindings';
import type { SectionId } from '../state/sections.svelte';

vi.mock('../api', async () => (await import('../../test/api')).api);

const sections = ['Lanes', 'KV pool', 'Tiers', 'Prefetch', 'Images', 'Components', 'Memory'];
const ids: SectionId[] = ['lanes', 'pool', 'tiers', 'prefetch', 'images', 'components', 'memory'];
const panel = () => screen.getByRole('complementary', { name: 'Context' });
const heading = (name: string) => within(panel()).getByRole('button', { name });
const section = (name: string): HTMLElement => {
  const found = panel().querySelector<HTMLElement>(`[data-section=${ids[sections.indexOf(name)]}]`);
  if (found === null) throw new Error(`no section ${name}`);
  return found;
};
const map = () => within(panel()).getByRole('img');
const owners = () => within(panel()).getByRole('list', { name: 'Owners' });

async function open(snapshot: Snapshot | null) {
  resetApi();
  api.snapshot.mockResolvedValue(snapshot);
  render(App);
  await screen.findByRole('textbox', { name: 'Message' });
  if (snapshot !== null) await waitFor(() => expect(map()).toBeVisible());
  return userEvent.setup();
}

/** Every section is open, as a person left it. */
const openAll = (snapshot: Snapshot | null) => {
  localStorage.setItem('panel-sections', JSON.stringify(Object.fromEntries(ids.map((id) => [id, true]))));
  return open(snapshot);
};

/** Shows the next picture. */
async function show(snapshot: Snapshot | null) {
  emit({ kind: 'snapshot', snapshot });
  await new Promise((done) => setTimeout(done, 130));
}

async function faults(): Promise<string[]> {
  const { violations } = await axe.run(panel(), {
    rules: { 'color-contrast': { enabled: false } },
    resultTypes: ['violations'],
  });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

beforeEach(() => {
  history.replaceState(null, '', '/');
  localStorage.clear();
});
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

describe('sections', () => {
  it('are closed but for lanes and pool, and as one left them at the next start', async () => {
    const user = await open(atRest());
    const opened = () => sections.filter((name) => heading(name).getAttribute('aria-expanded') === 'true');
    expect(opened()).toEqual(['Lanes', 'KV pool']);
    await user.click(heading('Lanes'));
    heading('Memory').focus();
    await user.keyboard('{Enter}');
    expect(opened()).toEqual(['KV pool', 'Memory']);
    cleanup();
    await open(atRest());
    expect(opened()).toEqual(['KV pool', 'Memory']);
  });

  it('say that nothing is known without a model, and are filled when it is there', async () => {
    await openAll(null);
    for (const name of sections) {
      expect(within(section(name)).getByText('Shown when the model is loaded.')).toBeVisible();
    }
    await show(atRest());
    expect(section('KV pool')).toHaveTextContent('0 of 66 pages');
    await show(null);
    expect(section('KV pool')).toHaveTextContent('Shown when the model is loaded.');
  });

  it.each([
    ['at rest', atRest()],
    ['busy', busy()],
    ['with a large pool', large()],
    ['refusing', refusing()],
  ])('stand in no one’s way, %s', async (_, snapshot) => {
    await openAll(snapshot);
    expect(await faults()).toEqual([]);
  });

  it('announce no figures', async () => {
    await openAll(busy());
    for (const name of sections) {
      const live = section(name).querySelectorAll(
        '[aria-live], [role=status], [role=alert], [role=progressbar]',
      );
      expect([...live], name).toEqual([]);
    }
  });
});

describe('an engine at rest', () => {
  it('has nothing under way and nothing in its pool', async () => {
    await open(atRest());
    expect(section('Lanes')).toHaveTextContent('Nothing is being read or answered.');
    expect(map()).toHaveAccessibleName('Map of 66 pages: 0 in use, 0 kept, 66 free');
    expect(section('KV pool')).toHaveTextContent('Nobody holds pages.');
  });

  it('says of what does not exist that it does not', async () => {
    await openAll(atRest());
    expect(section('Tiers')).toHaveTextContent('Not yet: nothing is stored outside the pool.');
    expect(section('Tiers')).not.toHaveTextContent('chunk');
    expect(section('Prefetch')).toHaveTextContent('Not yet: nothing is loaded ahead of time.');
    expect(section('Images')).toHaveTextContent('Not yet: images are not read.');
    expect(section('Components')).toHaveTextContent(/Vision tower\s*None/);
  });
});

describe('a busy engine', () => {
  it('shows each request’s phase', async () => {
    await open(busy());
    const lanes = within(section('Lanes')).getAllByRole('listitem');
    expect(lanes.map((lane) => lane.textContent?.replace(/\s+/g, ' ').trim())).toEqual([
      'Garden 14 tokens/s Answering, 120 tokens, prompt of 2,780 tokens, 2,100 reused',
      'Letter to the landlord about the broken heating 12 s left Reading 1,200 of 4,000 tokens, 800 reused',
      'Soup Answering, 1 token, prompt of 699 tokens',
      'notes.example Reading 300 of 4,000 tokens',
      'Unnamed 12 s Waiting, number 1 in line, 2 later ones went first',
    ]);
    expect(section('Lanes')).toHaveTextContent('4 active, 1 waiting');
    expect(section('Lanes')).toHaveTextContent('12 requests done since the model was loaded, 1 refused');
    expect(lanes[1]?.querySelector<HTMLElement>('.bar span')?.style.width).toBe('30%');
  });

  it('lists the owners of pages, what is in use first', async () => {
    await open(busy());
    const names = within(owners())
      .getAllByRole('button')
      .map((button) => button.textContent?.replace(/\s+/g, ' ').replaceAll(' ,', ',').trim());
    expect(names.slice(0, 1).concat(names.slice(-2))).toEqual([
      'Garden, in use, 12 pages, 2,900 tokens',
      'Garden, kept, 8 pages, 2,100 tokens',
      'Holiday, kept, 6 pages, 1,500 tokens',
    ]);
    expect(section('KV pool')).toHaveTextContent('9 of these are promised to requests under way.');
    expect(section('KV pool')).toHaveTextContent(/Most at once\s*48 pages/);
  });

  it('names an owner’s pages and marks them, by focus and by a press that stays', async () => {
    const user = await open(busy());
    const garden = within(owners()).getByRole('button', { name: /^Garden ?, kept/ });
    garden.focus();
    await waitFor(() => expect(garden).toHaveAccessibleDescription('Pages 31–38: Garden (kept)'));
    expect(map().querySelector('.mark')?.getAttribute('d')?.match(/M/g)).toHaveLength(8);
    await user.keyboard('{Enter}');
    expect(garden).toHaveAttribute('aria-pressed', 'true');
    await user.tab();
    await user.tab();
    expect(map().querySelector('.mark')).not.toBeNull();
    await user.click(garden);
    garden.blur();
    await user.unhover(garden);
    await waitFor(() => expect(map().querySelector('.mark')).toBeNull());
  });

  it('names the page under the pointer', async () => {
    await open(busy());
    vi.spyOn(map(), 'getBoundingClientRect').mockReturnValue(new DOMRect(100, 50, 280, 90));
    const point = (x: number, y: number) =>
      map().dispatchEvent(
        Object.assign(new MouseEvent('pointermove', { bubbles: true, clientX: x, clientY: y })),
      );
    point(101, 51);
    expect(await screen.findByText('Page 1: Garden')).toBeVisible();
    point(379, 51);
    expect(await screen.findByText(/^Page 1[0-9]: Letter/)).toBeVisible();
    map().dispatchEvent(new MouseEvent('pointerleave'));
    expect(await screen.findByText(/^Point at a square/)).toBeVisible();
  });

  it('draws nothing again while the map is the same', async () => {
    await open(busy());
    const changes: MutationRecord[] = [];
    const observer = new MutationObserver((records) => changes.push(...records));
    observer.observe(map(), { attributes: true, childList: true, subtree: true, characterData: true });
    for (const sequence of [3, 4]) await show(busy({ sequence }));
    expect(changes).toEqual([]);
    await show(atRest());
    expect(changes.length).toBeGreaterThan(0);
    observer.disconnect();
  });

  it('shows tiers, components and memory', async () => {
    await openAll(busy());
    expect(section('Tiers')).toHaveTextContent(/In use\s*28.8 MB, 22 pages/);
    expect(section('Components')).toHaveTextContent('Held by Garden, Soup, and request 99');
    expect(section('Memory')).toHaveTextContent('900 MB of 4 GB');
    expect(section('Memory')).toHaveTextContent(/Guessed right\s*120 of 300 \(40%\)/);
  });
});

it('a large pool is drawn in runs of pages, its long legend on request', async () => {
  const user = await open(large());
  expect(section('KV pool')).toHaveTextContent('Each square stands for 3 pages.');
  expect(within(owners()).getAllByRole('button')).toHaveLength(8);
  await user.click(within(panel()).getByRole('button', { name: 'Show 4 more' }));
  expect(within(owners()).getAllByRole('button')).toHaveLength(12);
  await user.click(within(panel()).getByRole('button', { name: 'Show fewer' }));
  expect(within(owners()).getAllByRole('button')).toHaveLength(8);
});

describe('a refusal', () => {
  it('is announced with its reason, once, and goes', async () => {
    await open(busy());
    expect(within(panel()).queryByRole('alert')).toBeNull();
    await show(refusing('the machine has 395 MB free'));
    const alert = within(panel()).getByRole('alert');
    expect(alert).toHaveTextContent('New requests are refused: the machine has 395 MB free.');
    const observer = new MutationObserver(() => {});
    observer.observe(alert, { childList: true, subtree: true, characterData: true });
    await show(refusing('the machine has 390 MB free'));
    expect(observer.takeRecords()).toEqual([]);
    await show(busy());
    expect(within(panel()).queryByRole('alert')).toBeNull();
    observer.disconnect();
  });
});

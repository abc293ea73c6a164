import { cleanup, render, screen, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api, resetApi } from '../../test/api';
import { aPassage } from '../../test/values';
import type { AnswerSources, Given, StepTold, Turn } from '../bindings';
import { renderMarkdown } from '../markdown/render';
import { Sources } from '../state/sources.svelte';
import Answer from './Answer.svelte';
import { shownSteps, stepLine } from './steps';
import { anAnswer } from './testing';

vi.mock('../api', async () => (await import('../../test/api')).api);

const soup = aPassage({
  label: 'soup.md',
  source: { ...aPassage().source, path: '/soup.md' } as Given['source'],
});
const skill: Given = { label: 'tidy-notes', text: '…', source: { kind: 'skill', name: 'tidy-notes' } };
const earlier: Given = { label: 'What grows?', text: '…', source: { kind: 'earlier', turn: 5 } };
const call: Given = { label: 'call', text: '…', source: { kind: 'call' } };

function show(turn: Partial<Turn>, told: AnswerSources | null, steps: StepTold[] = []) {
  if (told !== null) api.sources.mockResolvedValue(told);
  const onGiven = vi.fn();
  const props = {
    turn: anAnswer(turn),
    phase: null,
    isLast: true,
    busy: false,
    sources: new Sources(),
    steps,
    onGiven,
    onRegenerate: vi.fn(),
    onContinue: vi.fn(),
    onStop: vi.fn(),
    onSelectBranch: vi.fn(),
    onLink: vi.fn(),
  };
  return { ...props, ...render(Answer, props), user: userEvent.setup() };
}

beforeEach(() => resetApi());
afterEach(cleanup);

describe('an answer from documents', () => {
  const told: AnswerSources = {
    text: 'Ferns grow [garden.pdf, page 3](passage:1), and [x](passage:9).',
    given: [soup, aPassage(), skill, earlier, call],
    cited: [1],
    steps: [],
  };

  it('tells files of one name apart by their folders', async () => {
    const inFolder = (folder: string): Given =>
      aPassage({
        label: 'soup.md',
        source: { ...aPassage().source, path: `/${folder}/soup.md` } as Given['source'],
      });
    const { user } = show(
      { text: 'Soup.' },
      { ...told, given: [inFolder('summer'), inFolder('winter')], cited: [] },
    );
    await user.click(within(await screen.findByTestId('sources-line')).getByRole('button'));
    expect(screen.getByRole('button', { name: 'Show soup.md (in summer)' })).toBeVisible();
    expect(screen.getByRole('button', { name: 'Show soup.md (in winter)' })).toBeVisible();
  });

  it('names its passages by marks that open them', async () => {
    const { user, onGiven, onLink } = show({ text: 'Ferns grow [garden.pdf, page 3].' }, told);
    const mark = await screen.findByRole('link', { name: 'garden.pdf, page 3' });
    await user.click(mark);
    expect(onGiven).toHaveBeenCalledExactlyOnceWith(told.given[1]);
    mark.focus();
    await user.keyboard('{Enter}');
    expect(onGiven).toHaveBeenCalledTimes(2);
    await user.click(screen.getByRole('link', { name: 'x' }));
    expect(onGiven).toHaveBeenCalledTimes(2);
    expect(onLink).not.toHaveBeenCalled();
  });

  it('says in one line what was read for it, and lists it by request, what it names first', async () => {
    const { user, onGiven } = show({}, told);
    const line = await screen.findByRole('button', {
      name: 'Read: 2 passages of 2 documents · 1 earlier question of this chat · With the skill tidy-notes',
    });
    expect(screen.queryByRole('listitem')).toBeNull();
    await user.click(line);
    expect(line).toHaveAttribute('aria-expanded', 'true');
    const items = within(screen.getByRole('list', { name: 'What the question was given' })).getAllByRole(
      'listitem',
    );
    expect(items.map((item) => item.textContent?.trim().replace(/\s+/g, ' '))).toEqual([
      'garden.pdf, page 3 cited',
      'soup.md',
      'tidy-notes',
      'What grows?',
    ]);
    await user.click(screen.getByRole('button', { name: 'Show soup.md' }));
    expect(onGiven).toHaveBeenCalledExactlyOnceWith(soup);
  });

  it('is shown as it comes while it is written, and asks nothing', () => {
    show({ state: 'writing', text: 'Ferns [a](passage:0)' }, told);
    expect(screen.queryByRole('link')).toBeNull();
    expect(api.sources).not.toHaveBeenCalled();
  });

  it('asks once it has ended', async () => {
    const { rerender } = show({ state: 'writing', text: 'Ferns' }, told);
    await rerender({ turn: anAnswer({ text: 'Ferns.' }) });
    expect(await screen.findByRole('link', { name: 'garden.pdf, page 3' })).toBeVisible();
    expect(api.sources).toHaveBeenCalledExactlyOnceWith(2);
  });

  it('that was given nothing is its text alone', async () => {
    show({ text: 'Hi [a](passage:0)' }, { text: 'other', given: [], cited: [], steps: [] });
    await vi.waitFor(() => expect(api.sources).toHaveBeenCalled());
    expect(screen.getByText(/^Hi/)).toBeVisible();
    expect(screen.queryByTestId('sources-line')).toBeNull();
  });
});

describe('marks in markdown', () => {
  const marked = { references: {}, headingBase: undefined, citations: true };

  it('are links only where they were asked for, and only with a number', () => {
    expect(renderMarkdown('[a](passage:1)')).not.toContain('citation');
    expect(renderMarkdown('[a](passage:1)', marked)).toContain(
      '<a class="citation" href="#" data-passage="1">a</a>',
    );
    for (const href of ['passage:', 'passage:x', 'passage:1x', 'passage:-1', 'javascript:1', 'passage://1']) {
      expect(renderMarkdown(`[a](${href})`, marked), href).toContain('md-inert-link');
    }
  });

  it('leave other links as they are', () => {
    expect(renderMarkdown('[a](https://a.org)', marked)).toContain('href="https://a.org"');
  });
});

describe('steps with tools', () => {
  const ran: StepTold = {
    kind: 'script',
    skill: 'tidy-notes',
    script: 'count.py',
    ending: 'exited with 0',
    isDone: true,
    output: '12 notes',
    milliseconds: 400,
  };
  const steps: StepTold[] = [
    { kind: 'calls', tool: 'use_skill', arguments: '{"name":"tidy-notes"}' },
    { kind: 'skill', skill: 'tidy-notes', tokens: 312, isLeftOut: false },
    { kind: 'calls', tool: 'run_script', arguments: '{}' },
    { kind: 'starting', skill: 'tidy-notes', script: 'count.py', arguments: ['--all'] },
  ];

  it('are listed above the text, with what a script wrote behind a fold', async () => {
    const { rerender, user } = show({ state: 'writing', text: 'So' }, null, steps);
    const lines = () =>
      within(screen.getByTestId('steps'))
        .getAllByRole('listitem')
        .map((item) => item.textContent?.trim());
    expect(lines()).toEqual(['Uses the skill tidy-notes (312 tokens)', 'Runs count.py --all…']);
    await rerender({ steps: [...steps, ran] });
    expect(screen.getByText('Ran count.py: exited with 0 (0.4 s)')).toBeVisible();
    expect(screen.getByText('12 notes')).not.toBeVisible();
    await user.click(screen.getByText('Output'));
    expect(screen.getByText('12 notes')).toBeVisible();
  });

  it('of an answer from before the window was opened are those that were kept with it', async () => {
    show({}, { text: '', given: [], cited: [], steps: [...steps, ran] });
    expect(await screen.findByText('Ran count.py: exited with 0 (0.4 s)')).toBeVisible();
  });

  it('that only began are not told once the answer has ended', () => {
    expect(shownSteps(steps, false).map(({ kind }) => kind)).toEqual(['skill']);
  });

  it('that went wrong say so', () => {
    expect(stepLine({ kind: 'refused', reason: 'not allowed' })).toMatchObject({
      text: 'Refused: not allowed',
      isTrouble: true,
    });
    expect(stepLine({ ...ran, isDone: false, ending: 'exited with 1' }).isTrouble).toBe(true);
    expect(stepLine({ kind: 'outOfSteps', steps: 8 }).text).toContain('8 times');
  });
});

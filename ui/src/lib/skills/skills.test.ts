import { cleanup, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api } from '../../test/api';
import { faults, freshWindow, goTo, openPage } from '../../test/page';
import { aSkill, settings, skillList } from '../../test/values';
import type { SkillList } from '../bindings';

vi.mock('../api', async () => (await import('../../test/api')).api);

const full = (change: Partial<SkillList> = {}): SkillList =>
  skillList({
    skills: [
      aSkill({ name: 'count', source: 'user', isEnabled: false }, null),
      aSkill({
        files: [
          { path: 'references/a.md', bytes: 900, kind: 'reference' },
          { path: 'scripts/count.py', bytes: 400, kind: 'script' },
        ],
        warnings: ['Its name is not that of its folder.'],
        license: 'MIT',
        compatibility: 'Python 3',
      }),
    ],
    troubles: ['~/skills/old: SKILL.md has no description.'],
    folders: ['~/skills', '~/.agents/skills'],
    ...change,
  });

async function open(list: SkillList = full()) {
  const user = await openPage({}, () => api.listSkills.mockResolvedValue(list));
  await goTo(user, 'Skills');
  await screen.findByRole('heading', { name: 'Skills', level: 2 });
  return user;
}
const row = (name: string) => screen.getByRole('button', { name });

beforeEach(freshWindow);
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

describe('the screen of skills', () => {
  it('lists what each is, what it takes, and why others cannot be used', async () => {
    await open();
    const [count, tidy] = screen.getAllByTestId('skill-row');
    expect(count).toHaveTextContent('Yours');
    expect(tidy).toHaveTextContent(/Brings notes into order\..*Reprise.*312 tokens.*2 files.*1 remark/s);
    expect(screen.getByText('~/skills/old: SKILL.md has no description.')).toBeVisible();
    expect(screen.getByText('~/.agents/skills')).toBeVisible();
    expect(await faults()).toEqual([]);
  });

  it('switches skills on and off', async () => {
    const user = await open();
    const off = screen.getByRole('switch', { name: 'Use count' });
    expect(off).not.toBeChecked();
    await user.click(off);
    expect(api.enableSkill).toHaveBeenCalledExactlyOnceWith('count', true);
    await waitFor(() => expect(api.listSkills).toHaveBeenCalledTimes(2));
  });

  it('shows a skill in full', async () => {
    const user = await open();
    await user.click(row('tidy-notes'));
    const detail = within(screen.getByTestId('skill-detail'));
    expect(detail.getByText('Sort them by day.')).toBeVisible();
    expect(detail.getByText('MIT')).toBeVisible();
    expect(detail.getByText('Its name is not that of its folder.')).toBeVisible();
    api.readSkillFile.mockResolvedValue('print(1)\n  print(2)');
    await user.click(detail.getByRole('button', { name: /scripts\/count\.py/ }));
    expect(await detail.findByRole('region', { name: 'scripts/count.py' })).toHaveTextContent(
      'print(1) print(2)',
    );
    expect(api.readSkillFile).toHaveBeenCalledExactlyOnceWith('tidy-notes', 'scripts/count.py');
    await user.click(detail.getByRole('switch', { name: /Scripts may run without asking/ }));
    expect(api.trustSkill).toHaveBeenCalledExactlyOnceWith('tidy-notes', true);
    expect(await faults()).toEqual([]);
  });

  it('asks for no trust where there is no script', async () => {
    const user = await open(full({ skills: [aSkill()] }));
    await user.click(row('tidy-notes'));
    expect(screen.queryByRole('switch', { name: /Scripts/ })).toBeNull();
  });

  it('takes a skill to the chat', async () => {
    const user = await open();
    await user.click(row('tidy-notes'));
    await user.click(screen.getByRole('button', { name: 'Use in this chat' }));
    await waitFor(() => expect(screen.getByRole('textbox', { name: 'Message' })).toHaveFocus());
    expect(screen.getByTestId('composer-chip')).toHaveTextContent('tidy-notes');
  });

  it('says whether the model may choose by itself, and when it cannot', async () => {
    const user = await open(full({ canCall: false }));
    expect(screen.getByText(/cannot call tools/)).toBeVisible();
    await user.click(screen.getByRole('switch', { name: 'Let the model choose skills and tools by itself' }));
    expect(api.saveSettings).toHaveBeenCalledExactlyOnceWith(settings({ tools: false }));
  });
});

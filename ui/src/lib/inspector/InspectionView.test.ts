import { render, screen, within } from '@testing-library/svelte';
import axe from 'axe-core';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { api, resetApi } from '../../test/api';
import { inspection } from '../../test/values';
import InspectionView from './InspectionView.svelte';

vi.mock('../api', async () => (await import('../../test/api')).api);

describe('the inspector', () => {
  beforeEach(() => resetApi());

  const open = () => {
    render(InspectionView, { turn: 12 });
    return { dialog: screen };
  };

  it('shows how every token of the prompt was obtained, and what is behind it', async () => {
    const { dialog } = open();
    expect(await dialog.findByText('800 of 1,000 tokens reused')).toBeVisible();
    expect(api.inspect).toHaveBeenCalledExactlyOnceWith(12);
    const prompt = within(dialog.getByRole('region', { name: 'The prompt as it was sent' }));
    expect(prompt.getByText('Ferns')).toHaveAttribute('data-how', 'again');
    expect(prompt.getByText('grow.')).toHaveAttribute('title', expect.stringContaining('Tokens 631–800'));
    expect(dialog.getByText(/what was read before went on differently/)).toBeVisible();
    expect(dialog.getByText('Mosses')).toBeVisible();
    expect(dialog.getByText('Let go since')).toBeVisible();
    expect(dialog.getByRole('img', { name: /Compute 400 ms/ })).toBeVisible();
    expect(dialog.getByText('2 × 128 tokens: computes new tokens between known ones')).toBeVisible();
    const { violations } = await axe.run(document.body, { rules: { 'color-contrast': { enabled: false } } });
    expect(violations.map(({ id }) => id).filter((id) => id !== 'region')).toEqual([]);
  });

  it('says when it tells what would be read now', async () => {
    api.inspect.mockResolvedValue(inspection({ isNow: true, times: null }));
    const { dialog } = open();
    expect(await dialog.findByText(/how it would be read now/)).toBeVisible();
    expect(dialog.queryByRole('img')).toBeNull();
  });

  it('says why nothing can be told', async () => {
    api.inspect.mockRejectedValue({ message: 'no model is loaded' });
    const { dialog } = open();
    expect(await dialog.findByRole('alert')).toHaveTextContent('no model is loaded');
  });
});

import { beforeEach, expect, it } from 'vitest';
import { Sections } from './sections.svelte';

beforeEach(() => localStorage.clear());

it('what is under way and the pool are open at first', () => {
  const sections = new Sections();
  expect([sections.isOpen('lanes'), sections.isOpen('pool'), sections.isOpen('prefetch')]).toEqual([
    true,
    true,
    false,
  ]);
});

it('what a person opened or closed is so at the next start', () => {
  const sections = new Sections();
  sections.toggle('lanes');
  sections.toggle('memory');
  sections.toggle('memory');
  sections.toggle('tiers');
  const next = new Sections();
  expect([next.isOpen('lanes'), next.isOpen('memory'), next.isOpen('tiers')]).toEqual([false, false, true]);
});

it('what the web view kept may be anything', () => {
  for (const stored of ['null', '3', '{"lanes":"no"}', '{']) {
    localStorage.setItem('panel-sections', stored);
    expect(new Sections().isOpen('lanes'), stored).toBe(true);
  }
});

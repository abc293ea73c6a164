// The whole page for a test: rendered, with a program that answers as the test says. The test mocks `lib/api` itself.
import { cleanup, render, screen, within } from '@testing-library/svelte';
import userEvent, { type UserEvent } from '@testing-library/user-event';
import axe from 'axe-core';
import { afterEach, beforeEach, vi } from 'vitest';
import App from '../App.svelte';
import type { Start } from '../lib/bindings';
import { resetApi } from './api';

/** Before each test: nothing is remembered, and the window is at its beginning. */
export function freshWindow(): void {
  history.replaceState(null, '', '/');
  localStorage.clear();
  // jsdom lays nothing out, and a menu beside a button that is nowhere is not shown.
  vi.spyOn(Element.prototype, 'getClientRects').mockImplementation(
    () => [new DOMRect(0, 0, 80, 30)] as unknown as DOMRectList,
  );
}

/** Says that the window onto the turns is 600 pixels high, and every turn 100: else none is drawn. */
class FakeResizeObserver {
  readonly #callback: ResizeObserverCallback;
  constructor(callback: ResizeObserverCallback) {
    this.#callback = callback;
  }
  observe(target: Element): void {
    const contentRect = { width: 800, height: target.matches('.viewport') ? 600 : 100 } as DOMRectReadOnly;
    const entry = { target, contentRect } as ResizeObserverEntry;
    queueMicrotask(() => this.#callback([entry], this as unknown as ResizeObserver));
  }
  unobserve(): void {}
  disconnect(): void {}
}

/** Draws the turns of a chat, which jsdom without a layout would not. */
export function drawTurns(): void {
  vi.stubGlobal('ResizeObserver', FakeResizeObserver);
  vi.spyOn(HTMLElement.prototype, 'offsetParent', 'get').mockReturnValue(document.body);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600);
}

/** Each test of the file begins with a fresh window that draws the turns of a chat, and takes its page away. */
export function eachOnAPageWithTurns(): void {
  beforeEach(() => {
    freshWindow();
    drawTurns();
  });
  afterEach(() => {
    cleanup();
    document.body.replaceChildren();
  });
}

/** Opens the page; `prepare` says what the program answers to everything else. */
export async function openPage(
  start: Partial<Start> = {},
  prepare: () => void = () => {},
): Promise<UserEvent> {
  resetApi(start);
  prepare();
  render(App);
  await screen.findByRole('navigation');
  return userEvent.setup();
}

/** Goes to a screen by the sidebar. */
export async function goTo(user: UserEvent, name: string): Promise<void> {
  await user.click(within(screen.getByRole('navigation')).getByRole('button', { name }));
}

/** What axe finds, as "rule: element"; colours need a browser and are measured elsewhere. */
export async function faults(): Promise<string[]> {
  const { violations } = await axe.run(document.body, {
    rules: { 'color-contrast': { enabled: false } },
    resultTypes: ['violations'],
  });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

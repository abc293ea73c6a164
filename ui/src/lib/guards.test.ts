import { afterEach, expect, it, vi } from 'vitest';
import { keepDropsHarmless, keepMenuUseful, reportFailures } from './guards';

let off = (): void => {};
afterEach(() => {
  off();
  document.body.replaceChildren();
});

const sent = (event: Event, target: EventTarget = document.body): Event => {
  target.dispatchEvent(event);
  return event;
};
const cancelable = (type: string): Event => new Event(type, { bubbles: true, cancelable: true });

it('a dropped file never takes the place of the page', () => {
  off = keepDropsHarmless(window);
  for (const type of ['dragover', 'drop']) {
    const event = Object.assign(cancelable(type), { dataTransfer: { types: ['Files'] } });
    expect(sent(event).defaultPrevented).toBe(true);
  }
});

it('text dragged within a field stays the field’s business', () => {
  off = keepDropsHarmless(window);
  const field = document.body.appendChild(document.createElement('textarea'));
  const event = Object.assign(cancelable('drop'), { dataTransfer: { types: ['text/plain'] } });
  expect(sent(event, field).defaultPrevented).toBe(false);
});

it('a failure that nobody handled is reported', () => {
  const report = vi.fn();
  off = reportFailures(window, report);
  const error = new Error('broken');
  sent(new ErrorEvent('error', { error, message: 'broken' }), window);
  sent(Object.assign(new Event('unhandledrejection'), { reason: 'refused' }), window);
  sent(new ErrorEvent('error', { message: 'ResizeObserver loop completed' }), window);
  expect(report.mock.calls).toEqual([[error], ['refused']]);
});

it('the browser’s menu is for fields and selected text', () => {
  off = keepMenuUseful(window);
  const field = document.body.appendChild(document.createElement('input'));
  expect(sent(cancelable('contextmenu'), field).defaultPrevented).toBe(false);
  expect(sent(cancelable('contextmenu')).defaultPrevented).toBe(true);
});

import { fireEvent, render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import Markdown from './Markdown.svelte';

function show(text: string, streaming = false) {
  const onLink = vi.fn();
  const view = render(Markdown, { text, streaming, onLink });
  return {
    ...view,
    onLink,
    root: view.container.querySelector<HTMLElement>('.md')!,
    user: userEvent.setup(),
  };
}

describe('an answer that streams in', () => {
  it('keeps the elements of finished blocks', async () => {
    const { root, rerender } = show('# One\n\nTwo\n\nThree', true);
    const [heading, two] = [root.querySelector('h3'), screen.getByText('Two')];
    await rerender({ text: '# One\n\nTwo\n\nThree and **four' });
    expect(root.querySelector('h3')).toBe(heading);
    expect(screen.getByText('Two')).toBe(two);
    expect(root.querySelector('strong')?.textContent).toBe('four');
  });

  it('keeps all elements when it ends', async () => {
    const text = 'One\n\n```js\nx\n```\n\nTwo';
    const { root, rerender } = show(text, true);
    const before = [...root.querySelectorAll('.md-block, .code')];
    await rerender({ streaming: false });
    expect([...root.querySelectorAll('.md-block, .code')]).toEqual(before);
  });

  it('looks in the end as if it had been there at once', async () => {
    const text =
      'a **b**\n\n- c\n- d\n\n  ```js\n  e\n  ```\n\n| f |\n|---|\n| g |\n\n```\nh\n```\n\n$$\ni\n$$\n';
    const { root, rerender } = show('', true);
    for (let end = 1; end <= text.length; end++) await rerender({ text: text.slice(0, end) });
    await rerender({ streaming: false });
    const whole = show(text).root;
    expect(root.innerHTML).toBe(whole.innerHTML);
  });

  it('shows a half-open fence as code at once', () => {
    const { root } = show('Look:\n\n```py\nprint(1)', true);
    expect(root.querySelector('.code-lang')?.textContent).toBe('Python');
    expect(root.querySelector('pre')?.textContent).toBe('print(1)\n');
  });

  it('shows a formula that is half there', () => {
    expect(show('$$\n\\frac{a}{b', true).root.querySelector('.katex')).not.toBeNull();
  });
});

describe('links', () => {
  it('are given to the page, not followed', async () => {
    const { onLink } = show('[a](https://a.org/x)');
    // False: its default was prevented.
    expect(await fireEvent.click(screen.getByRole('link', { name: 'a' }))).toBe(false);
    expect(onLink).toHaveBeenCalledExactlyOnceWith('https://a.org/x');
  });

  it('are not followed by the middle button either', async () => {
    const { onLink } = show('[a](https://a.org/x)');
    const event = new MouseEvent('auxclick', { bubbles: true, cancelable: true, button: 1 });
    await fireEvent(screen.getByRole('link'), event);
    expect(event.defaultPrevented).toBe(true);
    expect(onLink).toHaveBeenCalledOnce();
  });
});

describe('code', () => {
  it('is copied as it is', async () => {
    const { user } = show('```html\n<b>\n  &amp;\n```');
    await user.click(screen.getByRole('button', { name: 'Copy HTML code' }));
    expect(await navigator.clipboard.readText()).toBe('<b>\n  &amp;');
    expect(screen.getAllByText('Copied').some((element) => element.closest('[aria-live]'))).toBe(true);
  });

  it('inside of a list is copied the same way', async () => {
    const { user } = show('- a\n\n  ```html\n  <b>\n    c\n  ```');
    await user.click(screen.getByRole('button', { name: 'Copy HTML code' }));
    expect(await navigator.clipboard.readText()).toBe('<b>\n  c');
  });
});

describe('what is wider than its place', () => {
  it('can be reached by keyboard, and only that', async () => {
    const { markIfScrollable } = await import('./scrollable');
    const { root } = show('| a |\n|---|\n| b |');
    const table = root.querySelector<HTMLElement>('.md-scroll')!;
    const width = vi.spyOn(table, 'scrollWidth', 'get').mockReturnValue(900);
    vi.spyOn(table, 'clientWidth', 'get').mockReturnValue(700);
    markIfScrollable(table);
    expect(screen.getByRole('group', { name: 'Table' })).toHaveAttribute('tabindex', '0');
    width.mockReturnValue(700);
    markIfScrollable(table);
    expect(screen.queryByRole('group')).toBeNull();
    expect(table).not.toHaveAttribute('tabindex');
  });
});

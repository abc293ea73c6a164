// A text field as tall as its text, up to a number of lines; then it scrolls.
import type { Attachment } from 'svelte/attachments';

/** Measuring lays the whole text out; a text of this length is surely as tall as can be. */
const SURELY_FULL_CHARS = 20_000;

/** Sets the field's height from its text. `maxHeight` in pixels. */
export function fitHeight(field: HTMLTextAreaElement, maxHeight: number): void {
  if (field.value.length > SURELY_FULL_CHARS) {
    field.style.height = `${maxHeight}px`;
    field.style.overflowY = 'auto';
    return;
  }
  field.style.height = 'auto';
  const wanted = field.scrollHeight;
  field.style.height = `${Math.min(wanted, maxHeight)}px`;
  field.style.overflowY = wanted > maxHeight ? 'auto' : 'hidden';
}

/** Keeps a field fitted to `text` and to its width; give it the field's value so that it runs when that changes. */
export function autosize(text: string, maxLines: number): Attachment<HTMLTextAreaElement> {
  return (field) => {
    void text;
    const style = getComputedStyle(field);
    const line = Number.parseFloat(style.lineHeight) || 24;
    const padding =
      (Number.parseFloat(style.paddingTop) || 0) + (Number.parseFloat(style.paddingBottom) || 0);
    const maxHeight = Math.round(line * maxLines + padding);
    fitHeight(field, maxHeight);
    if (typeof ResizeObserver === 'undefined') return;
    let width = field.clientWidth;
    const sizes = new ResizeObserver(() => {
      if (field.clientWidth === width) return;
      width = field.clientWidth;
      fitHeight(field, maxHeight);
    });
    sizes.observe(field);
    return () => sizes.disconnect();
  };
}

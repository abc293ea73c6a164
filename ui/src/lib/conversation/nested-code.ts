// Code inside of lists and quotes comes as HTML of the renderer. Here it gets what CodeBlock gives the rest: colours.
import type { Attachment } from 'svelte/attachments';
import { CodeLines } from '../markdown/codelines';

/** Colours the code blocks inside an element whose content is `html`; null when there are none. */
export function colourNestedCode(html: string): Attachment<HTMLElement> | null {
  if (!html.includes('data-code')) return null;
  return (root) => {
    const open = [...root.querySelectorAll<HTMLElement>('[data-code] code')].map((element) => {
      const lines = new CodeLines(() => {
        // Escaped text and spans of our own classes only.
        element.innerHTML = lines.chunks.join('');
      });
      lines.update(element.dataset['lang'] ?? '', (element.textContent ?? '').replace(/\n$/, ''), false);
      if (lines.hasColours) element.innerHTML = lines.chunks.join('');
      return lines;
    });
    return () => open.forEach((lines) => lines.close());
  };
}

// Makes what is wider than its place reachable by keyboard, and only that: a table that fits is no stop for Tab.
import type { Attachment } from 'svelte/attachments';

/** Marks one element (with its name in `data-label`) as scrollable, or takes the mark away. */
export function markIfScrollable(element: HTMLElement): void {
  const overflows = element.scrollWidth > element.clientWidth + 1;
  if (overflows === element.hasAttribute('tabindex')) return;
  if (overflows) {
    element.tabIndex = 0;
    // A group, not a region: a landmark for every wide table would drown those of the page.
    element.setAttribute('role', 'group');
    element.setAttribute('aria-label', element.dataset['label'] ?? '');
  } else {
    element.removeAttribute('tabindex');
    element.removeAttribute('role');
    element.removeAttribute('aria-label');
  }
}

/** Keeps the marks of all `.md-scroll` elements inside right, whatever comes and however the window changes. */
export const scrollRegions: Attachment<HTMLElement> = (root) => {
  if (typeof ResizeObserver === 'undefined') return;
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) markIfScrollable(target as HTMLElement);
  });
  const watch = (node: Node): void => {
    if (!(node instanceof HTMLElement)) return;
    if (node.matches('.md-scroll')) sizes.observe(node);
    for (const inner of node.querySelectorAll('.md-scroll')) sizes.observe(inner);
  };
  watch(root);
  const changes = new MutationObserver((records) => {
    for (const { target, addedNodes } of records) {
      // Lines of code come by the hundred, and nothing in them scrolls by itself.
      if ((target as Element).closest('pre') === null) addedNodes.forEach(watch);
    }
  });
  changes.observe(root, { childList: true, subtree: true });
  return () => {
    sizes.disconnect();
    changes.disconnect();
  };
};

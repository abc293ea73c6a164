// Task lists: `- [ ] to do` and `- [x] done` become checkboxes that show a state and cannot be changed.
import type { MarkdownIt, StateCore, Token } from 'markdown-it';
import { conversationStrings } from '../strings.conversation';

/** Adds task lists to a markdown-it instance. */
export function tasks(md: MarkdownIt): void {
  md.core.ruler.after('inline', 'tasks', (state) => {
    for (let index = 2; index < state.tokens.length; index++) markTask(state, index);
  });
  md.renderer.rules['task_checkbox'] = (tokens, index) => {
    const done = tokens[index]!.meta.done;
    const name = done ? conversationStrings.taskDone : conversationStrings.taskOpen;
    return `<input type="checkbox" class="md-task" disabled${done ? ' checked' : ''} aria-label="${name}"> `;
  };
}

function markTask(state: StateCore, index: number): void {
  const [item, paragraph, inline] = state.tokens.slice(index - 2, index + 1) as [Token, Token, Token];
  if (inline.type !== 'inline' || paragraph.type !== 'paragraph_open' || item.type !== 'list_item_open')
    return;
  const mark = /^\[([ xX])\]\s/.exec(inline.content);
  const text = inline.children?.[0];
  if (mark === null || text?.type !== 'text' || !/^\[[ xX]\]/.test(text.content)) return;
  text.content = text.content.slice(3).trimStart();
  const checkbox = new state.Token('task_checkbox', 'input', 0);
  checkbox.meta = { done: mark[1] !== ' ' };
  inline.children!.unshift(checkbox);
  item.attrJoin('class', 'md-task-item');
}

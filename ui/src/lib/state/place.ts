// Where in the program a person is, as the page's address keeps it over a reload: "#chat-12", "#skills", or a screen with
// the chat that lies under it, "#documents,chat-12".

/** What takes the main column: the chat on show, or a screen in its place. */
export type View = 'chat' | 'documents' | 'skills' | 'models';

/** The screens, in the order in which the sidebar lists them. */
export const screens = ['documents', 'skills', 'models'] as const satisfies readonly View[];

/** A view, and the chat on show or under the screen; null is the chat that does not exist yet. */
export type Place = { view: View; chat: number | null };

/** The place that an address's hash names; what cannot be read is a new chat. */
export function placeOf(hash: string): Place {
  const parts = hash.replace(/^#/, '').split(',');
  const view = screens.find((screen) => screen === parts[0]) ?? 'chat';
  const chat = /^chat-(\d+)$/.exec(parts.at(-1) ?? '')?.[1];
  return { view, chat: chat === undefined ? null : Number(chat) };
}

/** The hash that names a place; empty for the chat that does not exist yet. */
export function hashOf({ view, chat }: Place): string {
  const parts = [...(view === 'chat' ? [] : [view]), ...(chat === null ? [] : [`chat-${chat}`])];
  return parts.length === 0 ? '' : `#${parts.join(',')}`;
}

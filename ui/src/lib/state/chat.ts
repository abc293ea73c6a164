// What events do to the open chat and to the answers under way. Pure: the same values in, the same values out, and the
// very same object when nothing changed, so that the page redraws only what did.
import type { AppEvent, Chat, Phase, Turn } from '../bindings';

/** An answer under way. `chat` is null until an event or an opened chat says which one it belongs to. */
export type Answer = { chat: number | null; phase: Phase };

/** The answers under way, by turn. */
export type Answers = ReadonlyMap<number, Answer>;

/** A chat after an event; `gap` when text is missing in between and the chat must be opened anew. */
export type Applied = { chat: Chat; gap: boolean };

/** The turn with more text. `from` is where the piece begins; what the turn has already is skipped. */
export function appendText(turn: Turn, from: number, text: string): { turn: Turn; gap: boolean } {
  if (from > turn.text.length) return { turn, gap: true };
  const fresh = text.slice(turn.text.length - from);
  return { turn: fresh === '' ? turn : { ...turn, text: turn.text + fresh }, gap: false };
}

/** The open chat after an event, which may belong to another chat. */
export function applyToChat(chat: Chat, event: AppEvent): Applied {
  switch (event.kind) {
    case 'text': {
      const index = event.chat === chat.summary.id ? indexOfTurn(chat, event.turn) : -1;
      const before = chat.turns[index];
      // A turn of a branch that is not shown, or one that has ended and is complete.
      if (before === undefined || before.state !== 'writing') return { chat, gap: false };
      const { turn, gap } = appendText(before, event.from, event.text);
      return { chat: turn === before ? chat : withTurn(chat, index, turn), gap };
    }
    case 'ended': {
      const index = event.turn.chat === chat.summary.id ? indexOfTurn(chat, event.turn.id) : -1;
      return { chat: index < 0 ? chat : withTurn(chat, index, event.turn), gap: false };
    }
    case 'chat':
      return {
        chat: event.summary.id === chat.summary.id ? { ...chat, summary: event.summary } : chat,
        gap: false,
      };
    default:
      return { chat, gap: false };
  }
}

/** The answers under way after an event. */
export function applyToAnswers(answers: Answers, event: AppEvent): Answers {
  switch (event.kind) {
    case 'phase':
      return new Map(answers).set(event.turn, { chat: event.chat, phase: event.phase });
    case 'text': {
      if (answers.get(event.turn)?.chat === event.chat) return answers;
      const phase = answers.get(event.turn)?.phase ?? { at: 'writing' };
      return new Map(answers).set(event.turn, { chat: event.chat, phase });
    }
    case 'ended':
      return without(answers, event.turn.id);
    default:
      return answers;
  }
}

/** The answers under way, told by a chat as it was just read: what it says is newer than any event before it. */
export function adoptChat(answers: Answers, { summary, turns }: Chat): Answers {
  const adopted = new Map(answers);
  for (const turn of turns) {
    if (turn.state === 'writing') {
      const phase = answers.get(turn.id)?.phase ?? { at: 'queued' };
      adopted.set(turn.id, { chat: summary.id, phase });
    } else {
      adopted.delete(turn.id);
    }
  }
  return adopted;
}

/** The chats that are being answered. */
export function answeredChats(answers: Answers): ReadonlySet<number> {
  const chats = new Set<number>();
  for (const { chat } of answers.values()) if (chat !== null) chats.add(chat);
  return chats;
}

/** The answer under way in a chat: the last one, if several wait. */
export function turnUnderWay({ turns }: Chat): Turn | null {
  return turns.findLast((turn) => turn.state === 'writing') ?? null;
}

function indexOfTurn({ turns }: Chat, id: number): number {
  // Events are nearly always about the last turn.
  return turns.findLastIndex((turn) => turn.id === id);
}

function withTurn(chat: Chat, index: number, turn: Turn): Chat {
  return { ...chat, turns: chat.turns.with(index, turn) };
}

function without(answers: Answers, turn: number): Answers {
  if (!answers.has(turn)) return answers;
  const rest = new Map(answers);
  rest.delete(turn);
  return rest;
}

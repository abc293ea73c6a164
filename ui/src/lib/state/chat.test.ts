import { describe, expect, it } from 'vitest';
import { chatOf, summary, turn } from '../../test/values';
import type { AppEvent } from '../bindings';
import {
  adoptChat,
  answeredChats,
  appendText,
  applyToAnswers,
  applyToChat,
  turnUnderWay,
  type Answers,
} from './chat';

const writing = (text: string) => turn({ id: 7, text, state: 'writing' });
const textEvent = (from: number, text: string, change: Partial<Extract<AppEvent, { kind: 'text' }>> = {}) =>
  ({ kind: 'text', chat: 1, turn: 7, from, text, ...change }) satisfies AppEvent;

describe('appending text', () => {
  it('adds what follows', () => {
    expect(appendText(writing('Hello'), 5, ' world').turn.text).toBe('Hello world');
  });

  it('skips what is there already', () => {
    expect(appendText(writing('Hello'), 3, 'lo world').turn.text).toBe('Hello world');
  });

  it('changes nothing, not even the object, when all of it is there', () => {
    const before = writing('Hello');
    expect(appendText(before, 1, 'ell').turn).toBe(before);
  });

  it('leaves the text alone and says so when something is missing in between', () => {
    const before = writing('Hello');
    expect(appendText(before, 6, 'world')).toEqual({ turn: before, gap: true });
  });

  it('counts in UTF-16 units, as the program does', () => {
    const face = '🙂';
    expect(appendText(writing(face), 2, '!').turn.text).toBe('🙂!');
    expect(appendText(writing(face), 1, '!').gap).toBe(false);
  });
});

describe('events on the open chat', () => {
  it('adds text to the turn it is for and keeps the other turns as they are', () => {
    const first = turn({ id: 1, role: 'user', text: 'Hi' });
    const { chat } = applyToChat(chatOf([first, writing('a')]), textEvent(1, 'b'));
    expect(chat.turns.map(({ text }) => text)).toEqual(['Hi', 'ab']);
    expect(chat.turns[0]).toBe(first);
  });

  it('reports a gap', () => {
    expect(applyToChat(chatOf([writing('')]), textEvent(4, 'x')).gap).toBe(true);
  });

  it.each([
    ['another chat', textEvent(0, 'x', { chat: 2 })],
    ['a turn that is not shown', textEvent(0, 'x', { turn: 8 })],
    ['a turn of another chat that ended', { kind: 'ended', turn: turn({ id: 7, chat: 2 }) } as AppEvent],
    ['another chat’s title', { kind: 'chat', summary: summary({ id: 2, title: 'New' }) } as AppEvent],
  ])('is not touched by %s', (_, event) => {
    const chat = chatOf([writing('')]);
    expect(applyToChat(chat, event)).toEqual({ chat, gap: false });
    expect(applyToChat(chat, event).chat).toBe(chat);
  });

  it('adds nothing to a turn that has ended, however late text comes', () => {
    const chat = chatOf([turn({ id: 7, text: 'whole' })]);
    expect(applyToChat(chat, textEvent(9, 'late'))).toEqual({ chat, gap: false });
  });

  it('replaces a turn that ended with the whole of it', () => {
    const ended = turn({ id: 7, text: 'All of it.', state: 'stopped' });
    expect(applyToChat(chatOf([writing('All')]), { kind: 'ended', turn: ended }).chat.turns).toEqual([ended]);
  });

  it('takes the title of the open chat', () => {
    const renamed = summary({ title: 'Named' });
    expect(applyToChat(chatOf([]), { kind: 'chat', summary: renamed }).chat.summary).toBe(renamed);
  });
});

describe('answers under way', () => {
  const none: Answers = new Map();
  const phase = { kind: 'phase', chat: 3, turn: 9, phase: { at: 'loading' } } satisfies AppEvent;

  it('begin with a phase and end with the turn', () => {
    const begun = applyToAnswers(none, phase);
    expect([...answeredChats(begun)]).toEqual([3]);
    const ended = applyToAnswers(begun, { kind: 'ended', turn: turn({ id: 9, chat: 3 }) });
    expect(ended.size).toBe(0);
  });

  it('are of several chats at once', () => {
    const both = applyToAnswers(applyToAnswers(none, phase), { ...phase, chat: 4, turn: 10 });
    expect([...answeredChats(both)]).toEqual([3, 4]);
  });

  it('learn from text which chat they are of, and keep their phase', () => {
    const afterReload: Answers = new Map([[9, { chat: null, phase: { at: 'queued' } }]]);
    expect([...answeredChats(afterReload)]).toEqual([]);
    const known = applyToAnswers(afterReload, textEvent(0, 'x', { chat: 3, turn: 9 }));
    expect(known.get(9)).toEqual({ chat: 3, phase: { at: 'queued' } });
    expect(applyToAnswers(known, textEvent(1, 'y', { chat: 3, turn: 9 }))).toBe(known);
  });

  it('follow a chat that was just read: what writes is under way, what does not is over', () => {
    const before: Answers = new Map([
      [1, { chat: 1, phase: { at: 'writing' } }],
      [7, { chat: null, phase: { at: 'writing' } }],
      [50, { chat: 5, phase: { at: 'queued' } }],
    ]);
    const after = adoptChat(
      before,
      chatOf([turn({ id: 1 }), writing(''), turn({ id: 8, state: 'writing' })]),
    );
    expect([...after]).toEqual([
      [7, { chat: 1, phase: { at: 'writing' } }],
      [50, { chat: 5, phase: { at: 'queued' } }],
      [8, { chat: 1, phase: { at: 'queued' } }],
    ]);
  });

  it('are found in a chat', () => {
    expect(turnUnderWay(chatOf([turn(), writing('')]))?.id).toBe(7);
    expect(turnUnderWay(chatOf([turn()]))).toBeNull();
  });
});

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { api, emit, resetApi } from '../../test/api';
import { aDocument, aPassage, chatOf, indexing, startOf, summary, turn } from '../../test/values';
import type { AppEvent, Chat, Start } from '../bindings';
import { AppState } from './app.svelte';
import { Toasts } from './toasts.svelte';

vi.mock('../api', async () => (await import('../../test/api')).api);

/** A promise that a test settles. */
function later<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => ((resolve = yes), (reject = no)));
  return { promise, resolve, reject };
}

async function begin(start: Partial<Start> = {}): Promise<AppState> {
  resetApi(start);
  let app: AppState | null = null;
  const begun = await api.start((events) => app?.apply(events));
  app = new AppState(begun, new Toasts());
  await app.resume();
  return app;
}

const settled = (): Promise<void> => new Promise((done) => setTimeout(done, 0));
const text = (from: number, piece: string): AppEvent => ({
  kind: 'text',
  chat: 1,
  turn: 2,
  from,
  text: piece,
});
const asked = turn({ id: 1, role: 'user', text: 'Why?' });
const answerOf = (words: string, state: 'writing' | 'done' = 'writing') =>
  turn({ id: 2, parent: 1, text: words, state });
const nothing = { documents: [], allDocuments: false, skills: [] };
const shownText = (app: AppState) => app.chat?.turns.at(-1)?.text;

beforeEach(() => history.replaceState(null, '', '/'));

describe('an answer under way', () => {
  it('grows as its text comes and ends with the whole turn', async () => {
    const app = await begin({ list: { chats: [summary()], folders: [] } });
    api.openChat.mockResolvedValue(chatOf([asked, answerOf('')]));
    await app.openChat(1);
    emit(text(0, 'Be'), text(2, 'cause'));
    expect(shownText(app)).toBe('Because');
    expect([...app.answered]).toEqual([1]);
    emit({ kind: 'ended', turn: answerOf('Because.', 'done') });
    expect(shownText(app)).toBe('Because.');
    expect(app.answered.size).toBe(0);
  });

  it('misses nothing that happens while its chat is being read', async () => {
    const app = await begin({ list: { chats: [summary()], folders: [] } });
    const reading = later<Chat>();
    api.openChat.mockReturnValue(reading.promise);
    const opened = app.openChat(1);
    emit(text(2, 'cause'), { kind: 'ended', turn: answerOf('Because.', 'done') });
    reading.resolve(chatOf([asked, answerOf('Be')]));
    await opened;
    expect(shownText(app)).toBe('Because.');
    expect(app.answered.size).toBe(0);
  });

  it('is read again, once, when some of its text is missing', async () => {
    const app = await begin({ list: { chats: [summary()], folders: [] } });
    api.openChat.mockResolvedValue(chatOf([asked, answerOf('')]));
    await app.openChat(1);
    api.openChat.mockClear();
    const reading = later<Chat>();
    api.openChat.mockReturnValue(reading.promise);
    emit(text(3, 'ause'));
    emit(text(7, '!'));
    expect(shownText(app)).toBe('');
    reading.resolve(chatOf([asked, answerOf('Because')]));
    await settled();
    expect(shownText(app)).toBe('Because!');
    expect(api.openChat).toHaveBeenCalledTimes(1);
  });

  it('goes on after the page was loaded anew', async () => {
    history.replaceState(null, '', '/#chat-1');
    resetApi();
    const start: Partial<Start> = {
      list: { chats: [summary()], folders: [] },
      phases: [{ chat: 1, turn: 2, phase: { at: 'writing' } }],
    };
    resetApi(start);
    api.openChat.mockResolvedValue(chatOf([asked, answerOf('Be')]));
    const app = new AppState(startOf(start), new Toasts());
    await app.resume();
    app.apply([text(2, 'cause')]);
    expect(shownText(app)).toBe('Because');
    expect(app.phases.get(2)).toEqual({ at: 'writing' });
    expect([...app.answered]).toEqual([1]);
  });

  it('is made anew once, however often the button is clicked', async () => {
    const app = await begin({ list: { chats: [summary()], folders: [] } });
    api.regenerate.mockResolvedValue(chatOf([asked, answerOf('')]));
    await Promise.all([app.regenerate(2), app.regenerate(2)]);
    expect(api.regenerate).toHaveBeenCalledExactlyOnceWith(2);
    await app.regenerate(2);
    expect(api.regenerate).toHaveBeenCalledTimes(2);
  });

  it('is stopped where it is under way, and nothing is stopped elsewhere', async () => {
    const app = await begin({ list: { chats: [summary()], folders: [] } });
    expect(app.stop()).toBe(false);
    api.openChat.mockResolvedValue(chatOf([asked, answerOf('')]));
    await app.openChat(1);
    expect(app.stop()).toBe(true);
    expect(api.stop).toHaveBeenCalledExactlyOnceWith(2);
  });
});

describe('which chat is on show', () => {
  const list = { chats: [summary({ id: 1 }), summary({ id: 2 })], folders: [] };

  it('is the one asked for last, in whatever order they come', async () => {
    const app = await begin({ list });
    const slow = later<Chat>();
    api.openChat.mockReturnValueOnce(slow.promise).mockResolvedValueOnce(chatOf([], { id: 2 }));
    const first = app.openChat(1);
    await app.openChat(2);
    slow.resolve(chatOf([], { id: 1 }));
    await first;
    expect(app.chat?.summary.id).toBe(2);
    expect(location.hash).toBe('#chat-2');
  });

  it('stays when another could not be opened, and the reason is shown', async () => {
    const app = await begin({ list });
    await app.openChat(1);
    api.openChat.mockRejectedValue({ message: 'The file is damaged.' });
    await app.openChat(2);
    expect(app.chat?.summary.id).toBe(1);
    expect(app.toasts.shown.map(({ message }) => message)).toEqual(['The file is damaged.']);
  });

  it('is shown on the branch that has the turn that was found', async () => {
    const app = await begin({ list });
    api.openChat.mockResolvedValue(chatOf([asked], { id: 1 }));
    api.selectBranch.mockResolvedValue(chatOf([turn({ id: 8 })], { id: 1 }));
    await app.openChat(1, 8);
    expect(api.selectBranch).toHaveBeenCalledExactlyOnceWith(8);
    expect(app.chat?.turns.map(({ id }) => id)).toEqual([8]);
    expect(app.wantedTurn).toBe(8);
  });

  it('is a new one when the chat of the last time is gone', async () => {
    history.replaceState(null, '', '/#chat-99');
    const app = await begin({ list });
    expect(app.chat).toBeNull();
    expect(location.hash).toBe('');
  });
});

describe('sending', () => {
  it('makes a chat of the first message, in the list and on show', async () => {
    const app = await begin({ newChatDraft: 'Why?' });
    expect(app.drafts.text).toBe('Why?');
    api.send.mockResolvedValue(chatOf([asked, answerOf('')], { id: 1, title: 'Why?' }));
    await app.send('Why?');
    expect(api.send).toHaveBeenCalledExactlyOnceWith(null, null, 'Why?', nothing);
    expect(app.chat?.summary.title).toBe('Why?');
    expect(app.list.chats.map(({ id }) => id)).toEqual([1]);
    expect(app.drafts.text).toBe('');
    expect(api.setDraft).toHaveBeenCalledWith(null, '');
  });

  it('goes after the last turn', async () => {
    const app = await begin({ list: { chats: [summary()], folders: [] } });
    api.openChat.mockResolvedValue(chatOf([asked, answerOf('So.', 'done')]));
    await app.openChat(1);
    api.send.mockResolvedValue(chatOf([]));
    await app.send('And?');
    expect(api.send).toHaveBeenCalledExactlyOnceWith(1, 2, 'And?', nothing);
  });

  it('that fails leaves the message in the composer, with the reason', async () => {
    const app = await begin();
    api.send.mockRejectedValue({ message: 'The disk is full.' });
    app.typed('Why?');
    await app.send('Why?');
    expect(app.drafts.text).toBe('Why?');
    expect(app.sendError).toBe('The disk is full.');
    expect(app.isSending).toBe(false);
  });

  it('that fails keeps what was typed meanwhile', async () => {
    const app = await begin();
    const sending = later<Chat>();
    api.send.mockReturnValue(sending.promise);
    const sent = app.send('Why?');
    app.typed('Also');
    sending.reject({ message: 'No.' });
    await sent;
    expect(app.drafts.text).toBe('Why?\n\nAlso');
  });

  it('does not bring back a chat that was left meanwhile', async () => {
    const app = await begin({ list: { chats: [summary({ id: 2 })], folders: [] } });
    const sending = later<Chat>();
    api.send.mockReturnValue(sending.promise);
    const sent = app.send('Why?');
    await app.openChat(2);
    sending.resolve(chatOf([asked], { id: 1 }));
    await sent;
    expect(app.chat?.summary.id).toBe(2);
    expect(app.list.chats.map(({ id }) => id).sort()).toEqual([1, 2]);
  });

  it('sends nothing of blanks, and one message at a time', async () => {
    const app = await begin();
    await app.send(' \n');
    const sending = later<Chat>();
    api.send.mockReturnValue(sending.promise);
    void app.send('one');
    void app.send('two');
    expect(api.send).toHaveBeenCalledTimes(1);
  });
});

describe('what a message is asked with', () => {
  const garden = aDocument({ id: 'd1', state: 'waiting' });

  it('goes with it; documents stay for the next one, skills do not', async () => {
    const app = await begin();
    app.attached.addDocument(garden);
    app.attached.addDocument(garden);
    app.attached.addSkill('tidy-notes');
    api.send.mockResolvedValue(chatOf([asked, answerOf('', 'done')], { id: 1 }));
    await app.send('Why?');
    await app.send('And?');
    expect(api.send.mock.calls.map(([, , , with_]) => with_)).toEqual([
      { documents: ['d1'], allDocuments: false, skills: ['tidy-notes'] },
      { documents: ['d1'], allDocuments: false, skills: [] },
    ]);
  });

  it('is no matter of another chat', async () => {
    const app = await begin({ list: { chats: [summary()], folders: [] } });
    app.attached.addDocument(garden);
    app.attached.allDocuments = true;
    await app.openChat(1);
    expect(app.attached.asked()).toEqual(nothing);
  });

  it('is kept with its chat, and there again after another one or a restart', async () => {
    const list = { chats: [summary({ id: 1 }), summary({ id: 2 })], folders: [] };
    const app = await begin({ list });
    await app.openChat(1);
    await settled();
    app.attached.addDocument(garden);
    app.attached.keep();
    app.attached.addSkill('tidy-notes');
    await app.openChat(2);
    await settled();
    expect(api.setChips.mock.calls).toEqual([
      [1, { documents: ['d1'], allDocuments: false, skills: [] }],
      [1, { documents: ['d1'], allDocuments: false, skills: ['tidy-notes'] }],
    ]);
    api.chips.mockResolvedValue({ documents: [garden], allDocuments: true, skills: ['tidy-notes'] });
    await app.openChat(1);
    await settled();
    expect(app.attached.documents.map(({ name }) => name)).toEqual(['garden.pdf']);
    expect(app.attached.asked()).toEqual({ documents: ['d1'], allDocuments: true, skills: ['tidy-notes'] });
    app.attached.keep();
    expect(api.setChips).toHaveBeenCalledTimes(2);
  });

  it('goes along when the chat begins', async () => {
    const app = await begin();
    await settled();
    app.attached.addDocument(garden);
    app.attached.keep();
    api.send.mockResolvedValue(chatOf([asked, answerOf('', 'done')], { id: 5 }));
    await app.send('Why?');
    await settled();
    const picked = { documents: ['d1'], allDocuments: false, skills: [] };
    expect(api.setChips.mock.calls).toEqual([
      [null, picked],
      [null, nothing],
      [5, picked],
    ]);
  });

  it('says when it cannot be kept, and is still there', async () => {
    const app = await begin();
    await settled();
    api.setChips.mockRejectedValue({ message: 'No.' });
    app.attached.addSkill('tidy-notes');
    app.attached.keep();
    await settled();
    expect(app.toasts.shown.at(-1)?.message).toBe('No.');
    expect(app.attached.skills).toEqual(['tidy-notes']);
  });

  it('is there again when the message could not be sent', async () => {
    const app = await begin();
    app.attached.addSkill('tidy-notes');
    api.send.mockRejectedValue({ message: 'No.' });
    await app.send('Why?');
    expect(app.attached.skills).toEqual(['tidy-notes']);
  });

  it('says when a document that waited was read', async () => {
    vi.useFakeTimers();
    const app = await begin();
    app.attached.addDocument(garden);
    const documents = [{ ...garden, state: 'ready' as const }];
    api.listDocuments.mockResolvedValue({
      sources: [],
      documents,
      total: 1,
      indexing: indexing(),
      notes: [],
    });
    emit({ kind: 'documents', indexing: indexing({ ready: 1 }) });
    emit({ kind: 'documents', indexing: indexing({ ready: 1, passages: 9 }) });
    await vi.advanceTimersByTimeAsync(600);
    vi.useRealTimers();
    expect(api.listDocuments).toHaveBeenCalledExactlyOnceWith('garden.pdf', null, null);
    expect(app.attached.documents[0]?.state).toBe('ready');
  });
});

describe('screens', () => {
  it('lie over the chat, which is there when one comes back, and are kept over a reload', async () => {
    const list = { chats: [summary()], folders: [] };
    const app = await begin({ list });
    await app.openChat(1);
    app.view = 'documents';
    expect(location.hash).toBe('#documents,chat-1');
    const anew = await begin({ list });
    expect([anew.view, anew.chat?.summary.id]).toEqual(['documents', 1]);
    anew.view = 'chat';
    expect([location.hash, anew.chat?.summary.id]).toEqual(['#chat-1', 1]);
  });

  it('make room for a chat that is opened, and for a new one', async () => {
    const app = await begin({ list: { chats: [summary()], folders: [] } });
    app.view = 'skills';
    await app.openChat(1);
    expect(app.view).toBe('chat');
    app.view = 'models';
    app.newChat();
    expect([app.view, location.hash]).toEqual(['chat', '']);
  });
});

describe('what an answer was made from', () => {
  it('is asked once, and anew when the answer is another', async () => {
    const app = await begin();
    api.sources.mockResolvedValue({ text: 'So.', given: [aPassage()], cited: [0], steps: [] });
    await Promise.all([app.sources.ask(2), app.sources.ask(2)]);
    expect(api.sources).toHaveBeenCalledExactlyOnceWith(2);
    expect(app.sources.of(2)?.cited).toEqual([0]);
    emit({ kind: 'ended', turn: answerOf('So.', 'done') });
    expect(app.sources.of(2)).toBeNull();
    await app.sources.ask(2);
    expect(api.sources).toHaveBeenCalledTimes(2);
  });

  it('is left out where it cannot be told', async () => {
    const app = await begin();
    api.sources.mockRejectedValue({ message: 'No.' });
    await app.sources.ask(2);
    await app.sources.ask(2);
    expect(app.sources.of(2)).toBeNull();
    expect(api.sources).toHaveBeenCalledTimes(1);
  });
});

describe('questions before something runs', () => {
  const asking = { id: 4, chat: 1, question: { words: 'Run count.py?', alwaysMeans: 'all scripts' } };

  it('wait until they are decided or withdrawn', async () => {
    const app = await begin({ questions: [asking] });
    emit({ kind: 'asks', asking: { ...asking, id: 5 } });
    expect(app.tools.questions.map(({ id }) => id)).toEqual([4, 5]);
    emit({ kind: 'asked', id: 4 });
    await app.tools.answer(app.tools.questions[0]!, 'always');
    expect(api.answerQuestion).toHaveBeenCalledExactlyOnceWith(5, 'always');
    expect(app.tools.questions).toEqual([]);
  });

  it('are what the chat’s answer waits for until then', async () => {
    const phases = [
      {
        chat: 1,
        turn: 2,
        phase: { at: 'reading', doneTokens: 300, totalTokens: 300, reusedTokens: 0, secondsLeft: 1 },
      },
    ] as const;
    const app = await begin({ questions: [asking], phases: [...phases] });
    expect(app.phases.get(2)).toEqual({ at: 'asking' });
    emit({ kind: 'asked', id: 4 });
    expect(app.phases.get(2)).toEqual(phases[0].phase);
    emit({ kind: 'asks', asking: { ...asking, chat: 7 } });
    expect(app.phases.get(2)).toEqual(phases[0].phase);
  });

  it('come back when the decision did not arrive', async () => {
    const app = await begin({ questions: [asking] });
    api.answerQuestion.mockRejectedValue({ message: 'No.' });
    await app.attempt(() => app.tools.answer(asking, 'once'));
    expect(app.tools.questions).toEqual([asking]);
    expect(app.toasts.shown.at(-1)?.message).toBe('No.');
  });
});

describe('drafts', () => {
  it('are saved when the chat is left, and are there when one comes back', async () => {
    const chats = [summary({ id: 1, draft: 'old' }), summary({ id: 2 })];
    const app = await begin({ list: { chats, folders: [] } });
    await app.openChat(1);
    expect(app.drafts.text).toBe('old');
    app.typed('newer');
    await app.openChat(2);
    expect(api.setDraft).toHaveBeenCalledExactlyOnceWith(1, 'newer');
    expect(app.drafts.text).toBe('');
    await app.openChat(1);
    expect(app.drafts.text).toBe('newer');
  });

  it('are saved a moment after the last key, once', async () => {
    const app = await begin();
    vi.useFakeTimers();
    app.typed('a');
    vi.advanceTimersByTime(200);
    app.typed('ab');
    vi.advanceTimersByTime(299);
    expect(api.setDraft).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(api.setDraft).toHaveBeenCalledExactlyOnceWith(null, 'ab');
    vi.useRealTimers();
  });

  it('that cannot be saved are kept and the reason is shown', async () => {
    const app = await begin();
    api.setDraft.mockRejectedValue({ message: 'The disk is full.' });
    app.typed('text');
    await app.drafts.flush();
    expect(app.drafts.text).toBe('text');
    expect(app.toasts.shown[0]?.message).toContain('The disk is full.');
  });
});

describe('deleting', () => {
  it('takes the chat out of the list, and late news of it does not bring it back', async () => {
    const app = await begin({ list: { chats: [summary({ id: 1 }), summary({ id: 2 })], folders: [] } });
    await app.openChat(1);
    await app.deleteChat(summary({ id: 1 }), () => {});
    emit({ kind: 'chat', summary: summary({ id: 1 }) });
    expect(app.list.chats.map(({ id }) => id)).toEqual([2]);
    expect(app.chat).toBeNull();
  });

  it('can be undone: the chat is back, and on show if it was', async () => {
    const app = await begin({ list: { chats: [summary({ id: 1 })], folders: [] } });
    await app.openChat(1);
    const onRestored = vi.fn();
    await app.deleteChat(summary({ id: 1 }), onRestored);
    app.toasts.shown[0]?.action?.run();
    await settled();
    expect(api.restoreChat).toHaveBeenCalledExactlyOnceWith(1);
    expect(app.list.chats.map(({ id }) => id)).toEqual([1]);
    expect(app.chat?.summary.id).toBe(1);
    expect(onRestored).toHaveBeenCalledOnce();
  });

  it('that fails changes nothing', async () => {
    const app = await begin({ list: { chats: [summary({ id: 1 })], folders: [] } });
    api.deleteChat.mockRejectedValue({ message: 'Locked.' });
    expect(await app.deleteChat(summary({ id: 1 }), () => {})).toBe(false);
    expect(app.list.chats).toHaveLength(1);
    expect(app.toasts.shown[0]?.message).toBe('Locked.');
  });
});

describe('settings', () => {
  it('are shown at once and taken back when the program refuses them', async () => {
    const app = await begin();
    api.saveSettings.mockRejectedValue({ message: 'At most 2 threads.' });
    const saved = app.settings.save({ threads: 64 });
    expect(app.settings.value.threads).toBe(64);
    expect(await saved).toBe(false);
    expect(app.settings.value.threads).toBeNull();
    expect(app.settings.error).toBe('At most 2 threads.');
  });

  it('are saved one after the other, each with what came before it', async () => {
    const app = await begin();
    await Promise.all([app.settings.save({ topP: 0.5 }), app.settings.save({ temperature: 0 })]);
    expect(api.saveSettings.mock.calls.map(([{ topP, temperature }]) => [topP, temperature])).toEqual([
      [0.5, 0.7],
      [0.5, 0],
    ]);
    expect(app.settings.value).toMatchObject({ topP: 0.5, temperature: 0 });
  });
});

it('what the program has to say is shown until it was read', async () => {
  const app = await begin({ notices: ['A backup was made.'] });
  emit({ kind: 'notice', message: 'A font is missing.' });
  expect(app.toasts.shown.map(({ message }) => message)).toEqual([
    'A backup was made.',
    'A font is missing.',
  ]);
});

it('the newest count of the context wins, in whatever order they come', async () => {
  const app = await begin();
  const slow = later<null>();
  const use = {
    window: 8,
    system: 1,
    skills: 0,
    passages: 0,
    history: 0,
    draft: 0,
    typed: 0,
    reservedOutput: 1,
    free: 6,
    hiddenTurns: 0,
  };
  api.contextUse.mockReturnValueOnce(slow.promise).mockResolvedValueOnce(use);
  app.measure();
  app.measure();
  await settled();
  slow.resolve(null);
  await settled();
  expect(app.meter.use).toEqual(use);
});

it('what the next message is asked with is counted with it', async () => {
  const app = await begin();
  app.attached.addSkill('tidy-notes');
  app.measure();
  expect(api.contextUse).toHaveBeenLastCalledWith(null, '', {
    documents: [],
    allDocuments: false,
    skills: ['tidy-notes'],
  });
});

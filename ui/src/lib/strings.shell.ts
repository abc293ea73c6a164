// Every word of the window around the conversation. A translation is another object of the same type.
import type { KvStorage, Language, ReuseChoice } from './bindings';
import type { NumberSetting, Problem } from './settings/validate';
import { formatInteger, plural } from './format';
import { inLanguage } from './language';
import type { Owner } from './state/budget';
import type { ShortcutId } from './shortcuts';
import type { View } from './state/place';
import { german } from './strings.shell.de';

const tokens = (count: number): string =>
  `${formatInteger(count)} ${plural(count, { one: 'token', other: 'tokens' })}`;

/** What the window around the conversation says, in English. */
export const english = {
  app: {
    name: 'Reprise',
    starting: 'Starting…',
    startFailed: 'Reprise could not start',
    tryAgain: 'Try again',
    skipToConversation: 'Skip to the conversation',
    skipToScreen: 'Skip to the content',
    close: 'Close',
    cancel: 'Cancel',
    withShortcut: (label: string, chord: string) => `${label} (${chord})`,
  },

  chats: {
    label: 'Chats',
    newChat: 'New chat',
    search: 'Search',
    settings: 'Settings',
    screens: { documents: 'Documents', skills: 'Skills', models: 'Models' } satisfies Record<
      Exclude<View, 'chat'>,
      string
    >,
    untitled: 'New chat',
    none: 'Your chats will appear here.',
    pinned: 'Pinned',
    today: 'Today',
    earlier: 'Earlier',
    showMore: (count: number) => `Show more (${formatInteger(count)})`,
    emptyFolder: 'No chats in this folder',
    options: (title: string) => `Options of “${title}”`,
    answering: 'Being answered',
    rename: 'Rename',
    titleOf: (title: string) => `Title of “${title}”`,
    pin: 'Pin',
    unpin: 'Unpin',
    move: 'Move to folder',
    noFolder: 'No folder',
    newFolder: 'New folder…',
    exportMarkdown: 'Export as Markdown',
    exportJson: 'Export as JSON',
    delete: 'Delete',
    folderOptions: (name: string) => `Options of the folder “${name}”`,
    folderName: (name: string) => `Name of the folder “${name}”`,
    renameFolder: 'Rename folder',
    removeFolder: 'Remove folder, keep its chats',
  },

  folder: {
    title: 'New folder',
    name: 'Name',
    create: 'Create folder',
  },

  header: {
    rename: (title: string) => `Rename “${title}”`,
    title: 'Chat title',
    hideSidebar: 'Hide sidebar',
    showSidebar: 'Show sidebar',
    hidePanel: 'Hide context panel',
    showPanel: 'Show context panel',
  },

  model: {
    loading: (name: string) => `Loading ${name}`,
    ready: (name: string) => `${name} is ready`,
    failed: (name: string) => `${name} could not be loaded`,
    failedShort: 'Not loaded',
    why: (name: string) => `Why ${name} could not be loaded`,
    tryAgain: 'Try again',
  },

  empty: {
    greeting: 'What would you like to know?',
    ready: (name: string) => `The model ${name} is ready on this machine; nothing leaves it.`,
    loading: (name: string) => `The model ${name} is loading. You can write already.`,
    failed: 'The model could not be loaded',
    examples: 'Examples',
    samples: {
      document: { label: 'With the sample document:', text: 'Who is the nearest doctor?' },
      skill: {
        label: 'With the sample skill:',
        text: 'Tidy these notes: milk, call Ada at nine, bread, the boiler drips',
      },
    },
    questions: [
      'Explain how a bill becomes law, in five sentences',
      'Write a polite reply that declines an invitation',
      'What is the difference between a list and a tuple in Python?',
    ],
  },

  composer: {
    notSent: (reason: string) => `Not sent: ${reason}`,
    notAttached: (name: string, reason: string) => `${name} was not attached: ${reason}`,
  },

  consent: {
    title: 'May this run?',
    once: 'Allow once',
    always: 'Always allow',
    alwaysMeans: (what: string) => `“Always” means: ${what}.`,
    deny: 'Do not allow',
    more: (count: number) =>
      plural(count, {
        one: 'One more question waits after this one.',
        other: `${formatInteger(count)} more questions wait after this one.`,
      }),
    elsewhere: (title: string) => `“${title}” asks whether something may run.`,
    openChat: 'Open the chat',
  },

  panel: {
    label: 'Context',
    window: 'Context window',
    ofWindow: (used: number, window: number) => `${formatInteger(used)} of ${tokens(window)}`,
    hint: 'What the next prompt of this chat takes, with the room kept for its answer.',
    noModel: 'Shown when the model is loaded.',
    owners: {
      system: 'System prompt',
      skills: 'Skills',
      passages: 'Passages',
      history: 'History',
      draft: 'This message',
      reserved: 'Kept for the answer',
      free: 'Free',
    } satisfies Record<Owner, string>,
    tokens,
    high: (percentage: string) => `The window is ${percentage} full.`,
    full: (percentage: string) => `The window is ${percentage} full. The oldest turns will drop out soon.`,
    over: 'This message does not fit the window. Shorten it, or give the model a larger window in the settings.',
    hidden: (count: number) =>
      plural(count, {
        one: 'The model no longer sees the first turn.',
        other: `The model no longer sees the first ${formatInteger(count)} turns.`,
      }),
    model: 'Model',
    name: 'Name',
    state: 'State',
    quantisation: 'Quantisation',
    contextWindow: 'Window',
    trained: 'Trained for',
    threads: 'Threads',
    backend: 'Backend',
  },

  search: {
    title: 'Search chats',
    field: 'Search titles and contents',
    results: 'Results',
    recent: 'Recent chats',
    searching: 'Searching…',
    nothing: (query: string) => `Nothing found for “${query}”.`,
    noChats: 'There are no chats yet.',
    count: (count: number) => `${formatInteger(count)} ${plural(count, { one: 'result', other: 'results' })}`,
    failed: (reason: string) => `The search failed: ${reason}`,
    help: { move: 'to move', open: 'to open', close: 'to close' },
  },

  settings: {
    title: 'Settings',
    sections: {
      general: 'General',
      model: 'Model',
      answers: 'Answers',
      reuse: 'Reuse',
      shortcuts: 'Shortcuts',
      about: 'About',
    },
    notSaved: (reason: string) => `Not saved: ${reason}`,
    language: 'Language',
    languages: { system: 'System', english: 'English', german: 'Deutsch' } satisfies Record<Language, string>,
    languageHint: 'A change loads the window anew. What is being answered goes on.',
    theme: 'Theme',
    themes: { system: 'System', light: 'Light', dark: 'Dark' },
    systemPrompt: 'System prompt',
    systemPromptHint: 'What the model is told before every chat.',
    model: 'Model',
    defaultModel: 'Default model',
    addModel: 'Add a GGUF file…',
    added: (name: string) => `${name} was added.`,
    loadingModels: 'Looking for models…',
    reloads:
      'A change here loads the model anew. Answers that are being written stop; they can be continued.',
    kvStorage: 'Format of the context',
    kvStorageHint:
      'How exactly the memory for context keeps what was read. Automatic: what measured well for the model. Fewer bits hold more; with 4 bits some models answer worse.',
    kvStorages: {
      profile: 'Automatic',
      f16: '16 bits',
      q8: '8 bits',
      tq4: '4 bits',
    } satisfies Record<KvStorage, string>,
    speculation: 'Guess ahead',
    speculationHint:
      'While one answer is written alone, words that came up before are tried again. No answer changes, only how fast it comes.',
    on: 'On',
    off: 'Off',
    reuse: 'Use text again',
    reuseHint:
      'What the model has read need not be read again. The same beginning changes no answer. Anywhere saves more: text that stands at another place is moved there, and a share of it computed again, so that answers may come out a little different.',
    reuses: { anywhere: 'Anywhere', prefix: 'Same beginning', nothing: 'Not at all' } satisfies Record<
      ReuseChoice,
      string
    >,
    keeping: 'Keep on disk',
    keepingHint:
      'So that a chat goes on at once after a restart. Off keeps nothing new; what is kept already stays until it is erased. A change loads the model anew.',
    readAhead: 'Read ahead',
    readAheadHint:
      'While nothing else is done, and not on battery, skills and indexed documents are read before you ask about them.',
    storeFault: (reason: string) => `Nothing that is read now is kept on disk: ${reason}`,
    numbers: {
      contextTokens: {
        label: 'Window',
        unit: 'tokens',
        hint: 'Prompt and answer together. Automatic: the smaller of the model’s own and 8,192.',
      },
      threads: { label: 'Threads', unit: '', hint: 'Automatic: one for each core of this machine.' },
      kvBudgetMegabytes: {
        label: 'Memory for context',
        unit: 'MB',
        hint: 'Holds what the model has read and written in all chats (KV). More makes room for more answers at once and for longer ones. Automatic: a quarter of the memory that is free.',
      },
      memoryLimitMegabytes: {
        label: 'Memory limit',
        unit: 'MB',
        hint: 'An answer that would bring the program above this is not begun. Automatic: 80 % of this machine’s memory.',
      },
      recomputeRatio: {
        label: 'Share computed again',
        unit: '',
        hint: 'Of text that was moved. 0.35 measured well, and less of it in short prompts; another value is kept to: more is closer to reading it all, and takes longer. 1 reads it all.',
      },
      diskBudgetMegabytes: {
        label: 'Disk for it',
        unit: 'MB',
        hint: 'What is used least goes first. Automatic: a tenth of what is free, at most 8 GB. A change loads the model anew.',
      },
      temperature: {
        label: 'Temperature',
        unit: '',
        hint: '0 always takes the likeliest word; higher is freer.',
      },
      topP: {
        label: 'Top-p',
        unit: '',
        hint: 'Chooses among the likeliest words that together have this probability; 1 is all.',
      },
      repetitionPenalty: {
        label: 'Repetition penalty',
        unit: '',
        hint: 'Makes words of the recent text less likely; 1 is off.',
      },
      maxAnswerTokens: {
        label: 'Longest answer',
        unit: 'tokens',
        hint: 'An answer ends here at the latest; this much of the window is kept for it.',
      },
    } satisfies Record<NumberSetting, { label: string; unit: string; hint: string }>,
    automatic: 'Automatic',
    problems: {
      empty: 'A number is needed.',
      notNumber: 'This is not a number.',
      notWhole: 'A whole number is needed.',
      outOfBounds: '',
    } satisfies Record<Problem, string>,
    between: (least: string, most: string) => `From ${least} to ${most}.`,
    above: (bound: string, most: string) => `Above ${bound} and at most ${most}.`,
    resetSampling: 'Reset to defaults',
    shortcuts: {
      newChat: 'New chat',
      search: 'Search',
      sidebar: 'Show or hide the sidebar',
      panel: 'Show or hide the context panel',
      settings: 'Settings',
      rename: 'Rename the chat',
      notices: 'Go to the notifications',
    } satisfies Record<ShortcutId, string>,
    otherShortcuts: {
      send: { keys: 'Enter', label: 'Send the message' },
      breakLine: { keys: 'Shift+Enter', label: 'New line in the message' },
      stop: { keys: 'Esc', label: 'Close what is on top, or stop the answer' },
      mention: { keys: '@', label: 'Ask about a document' },
      skill: { keys: '/', label: 'Answer with a skill' },
    },
    version: 'Version',
    commit: 'Commit',
    dataFolder: 'Data folder',
    eraseAll: 'Erase everything…',
    eraseAllHint:
      'All chats, all documents that were copied here, and what was read of them. Your own files, the settings and the models stay.',
    eraseAllSure: 'Erase all of it, for good?',
    eraseAllYes: 'Erase everything',
    private: 'Everything you write stays in this folder, on this machine.',
  },

  link: {
    title: 'Open this link outside Reprise?',
    hint: 'Your browser will contact this address:',
    punycode: 'This host has letters outside plain English ones and may imitate another.',
    refused: 'Reprise does not open addresses of this kind.',
    open: 'Open link',
  },

  toasts: {
    label: 'Notifications',
    dismiss: 'Dismiss',
    undo: 'Undo',
    deleted: (title: string) => `“${title}” was deleted.`,
    exported: (path: string) => `Saved to ${path}`,
  },

  errors: {
    draft: (reason: string) => `The draft could not be saved: ${reason}`,
    unexpected: (reason: string) => `Something went wrong: ${reason}`,
  },
};

/** All of it, in whatever language. */
export type ShellStrings = typeof english;

/** What the window around the conversation says. */
export const shellStrings: ShellStrings = inLanguage(english, german);

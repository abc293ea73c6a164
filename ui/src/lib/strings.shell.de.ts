// The words of the window around the conversation, in German.
import { formatInteger, plural } from './format';
import type { ShellStrings } from './strings.shell';

const tokens = (count: number): string =>
  `${formatInteger(count)} ${plural(count, { one: 'Token', other: 'Tokens' })}`;

/** What the window around the conversation says, in German. */
export const german: ShellStrings = {
  app: {
    name: 'Reprise',
    starting: 'Startet …',
    startFailed: 'Reprise konnte nicht starten',
    tryAgain: 'Noch einmal versuchen',
    skipToConversation: 'Zur Unterhaltung springen',
    skipToScreen: 'Zum Inhalt springen',
    close: 'Schließen',
    cancel: 'Abbrechen',
    withShortcut: (label, chord) => `${label} (${chord})`,
  },

  chats: {
    label: 'Chats',
    newChat: 'Neuer Chat',
    search: 'Suchen',
    settings: 'Einstellungen',
    screens: { documents: 'Dokumente', skills: 'Skills', models: 'Modelle' },
    untitled: 'Neuer Chat',
    none: 'Hier erscheinen Ihre Chats.',
    pinned: 'Angeheftet',
    today: 'Heute',
    earlier: 'Früher',
    showMore: (count) => `Mehr zeigen (${formatInteger(count)})`,
    emptyFolder: 'Keine Chats in diesem Ordner',
    options: (title) => `Optionen von „${title}“`,
    answering: 'Wird beantwortet',
    rename: 'Umbenennen',
    titleOf: (title) => `Titel von „${title}“`,
    pin: 'Anheften',
    unpin: 'Lösen',
    move: 'In einen Ordner',
    noFolder: 'Kein Ordner',
    newFolder: 'Neuer Ordner …',
    exportMarkdown: 'Als Markdown exportieren',
    exportJson: 'Als JSON exportieren',
    delete: 'Löschen',
    folderOptions: (name) => `Optionen des Ordners „${name}“`,
    folderName: (name) => `Name des Ordners „${name}“`,
    renameFolder: 'Ordner umbenennen',
    removeFolder: 'Ordner entfernen, Chats behalten',
  },

  folder: {
    title: 'Neuer Ordner',
    name: 'Name des Ordners',
    create: 'Ordner anlegen',
  },

  header: {
    rename: (title) => `„${title}“ umbenennen`,
    title: 'Titel des Chats',
    hideSidebar: 'Seitenleiste ausblenden',
    showSidebar: 'Seitenleiste einblenden',
    hidePanel: 'Kontextleiste ausblenden',
    showPanel: 'Kontextleiste einblenden',
  },

  model: {
    loading: (name) => `${name} wird geladen`,
    ready: (name) => `${name} ist bereit`,
    failed: (name) => `${name} ließ sich nicht laden`,
    failedShort: 'Nicht geladen',
    why: (name) => `Warum sich ${name} nicht laden ließ`,
    tryAgain: 'Noch einmal versuchen',
  },

  empty: {
    greeting: 'Was möchten Sie wissen?',
    ready: (name) => `Das Modell ${name} ist auf diesem Gerät bereit; nichts verlässt es.`,
    loading: (name) => `Das Modell ${name} wird geladen. Schreiben können Sie schon.`,
    failed: 'Das Modell ließ sich nicht laden',
    examples: 'Beispiele',
    samples: {
      document: { label: 'Mit dem Beispieldokument:', text: 'Who is the nearest doctor?' },
      skill: {
        label: 'Mit dem Beispiel-Skill:',
        text: 'Tidy these notes: milk, call Ada at nine, bread, the boiler drips',
      },
    },
    questions: [
      'Erkläre in fünf Sätzen, wie aus einem Entwurf ein Gesetz wird',
      'Schreibe eine höfliche Absage auf eine Einladung',
      'Was unterscheidet in Python eine Liste von einem Tupel?',
    ],
  },

  composer: {
    notSent: (reason) => `Nicht gesendet: ${reason}`,
    notAttached: (name, reason) => `${name} wurde nicht angehängt: ${reason}`,
  },

  consent: {
    title: 'Darf das laufen?',
    once: 'Einmal erlauben',
    always: 'Immer erlauben',
    alwaysMeans: (what) => `„Immer“ heißt: ${what}.`,
    deny: 'Nicht erlauben',
    more: (count) =>
      plural(count, {
        one: 'Danach wartet noch eine Frage.',
        other: `Danach warten noch ${formatInteger(count)} Fragen.`,
      }),
    elsewhere: (title) => `„${title}“ fragt, ob etwas laufen darf.`,
    openChat: 'Den Chat öffnen',
  },

  panel: {
    label: 'Kontext',
    window: 'Kontextfenster',
    ofWindow: (used, window) => `${formatInteger(used)} von ${tokens(window)}`,
    hint: 'Was der nächste Prompt dieses Chats braucht, mit dem Platz für seine Antwort.',
    noModel: 'Wird gezeigt, wenn das Modell geladen ist.',
    owners: {
      system: 'Systemprompt',
      skills: 'Benutzte Skills',
      passages: 'Textstellen',
      history: 'Verlauf',
      draft: 'Diese Nachricht',
      reserved: 'Für die Antwort',
      free: 'Frei',
    },
    tokens,
    high: (percentage) => `Das Fenster ist zu ${percentage} voll.`,
    full: (percentage) => `Das Fenster ist zu ${percentage} voll. Die ältesten Beiträge fallen bald heraus.`,
    over: 'Diese Nachricht passt nicht in das Fenster. Kürzen Sie sie, oder geben Sie dem Modell in den Einstellungen ein größeres.',
    hidden: (count) =>
      plural(count, {
        one: 'Das Modell sieht den ersten Beitrag nicht mehr.',
        other: `Das Modell sieht die ersten ${formatInteger(count)} Beiträge nicht mehr.`,
      }),
    model: 'Modell',
    name: 'Bezeichnung',
    state: 'Zustand',
    quantisation: 'Quantisierung',
    contextWindow: 'Fenster',
    trained: 'Trainiert für',
    threads: 'Rechenfäden',
    backend: 'Rechenwerk',
  },

  search: {
    title: 'Chats durchsuchen',
    field: 'Titel und Inhalte durchsuchen',
    results: 'Treffer',
    recent: 'Letzte Chats',
    searching: 'Sucht …',
    nothing: (query) => `Nichts gefunden für „${query}“.`,
    noChats: 'Es gibt noch keine Chats.',
    count: (count) => `${formatInteger(count)} Treffer`,
    failed: (reason) => `Die Suche ist fehlgeschlagen: ${reason}`,
    help: { move: 'bewegt', open: 'öffnet', close: 'schließt' },
  },

  settings: {
    title: 'Einstellungen',
    sections: {
      general: 'Allgemein',
      model: 'Modell',
      answers: 'Antworten',
      reuse: 'Wiederverwendung',
      shortcuts: 'Tasten',
      about: 'Über Reprise',
    },
    notSaved: (reason) => `Nicht gespeichert: ${reason}`,
    language: 'Sprache',
    languages: { system: 'Wie das System', english: 'English', german: 'Deutsch' },
    languageHint: 'Eine Änderung lädt das Fenster neu. Was gerade beantwortet wird, geht weiter.',
    theme: 'Aussehen',
    themes: { system: 'Wie das System', light: 'Hell', dark: 'Dunkel' },
    systemPrompt: 'Systemprompt',
    systemPromptHint: 'Was dem Modell vor jedem Chat gesagt wird.',
    model: 'Modell',
    defaultModel: 'Voreingestelltes Modell',
    addModel: 'GGUF-Datei hinzufügen …',
    added: (name) => `${name} wurde hinzugefügt.`,
    loadingModels: 'Modelle werden gesucht …',
    reloads:
      'Eine Änderung hier lädt das Modell neu. Antworten, die gerade geschrieben werden, halten an; sie lassen sich fortsetzen.',
    kvStorage: 'Format des Kontexts',
    kvStorageHint:
      'Wie genau der Speicher für den Kontext behält, was gelesen wurde. Automatisch: was beim Modell gut gemessen wurde. Weniger Bits fassen mehr; mit 4 Bits antworten manche Modelle schlechter.',
    kvStorages: {
      profile: 'Automatisch',
      f16: '16 Bits',
      q8: '8 Bits',
      tq4: '4 Bits',
    },
    speculation: 'Vorausraten',
    speculationHint:
      'Solange nur eine Antwort geschrieben wird, werden Wörter versucht, die schon vorkamen. Keine Antwort wird dadurch anders, nur schneller.',
    on: 'An',
    off: 'Aus',
    reuse: 'Text wiederverwenden',
    reuseHint:
      'Was das Modell gelesen hat, muss es nicht noch einmal lesen. Gleicher Anfang ändert keine Antwort. Überall spart mehr: Text, der an einer anderen Stelle steht, wird dorthin verschoben und zu einem Teil neu berechnet, sodass Antworten etwas anders ausfallen können.',
    reuses: { anywhere: 'Überall', prefix: 'Gleicher Anfang', nothing: 'Gar nicht' },
    keeping: 'Auf der Platte behalten',
    keepingHint:
      'Damit ein Chat nach einem Neustart gleich weitergeht. Aus behält nichts Neues; was schon behalten wird, bleibt, bis es gelöscht wird. Eine Änderung lädt das Modell neu.',
    readAhead: 'Vorauslesen',
    readAheadHint:
      'Solange nichts anderes zu tun ist, und nicht im Akkubetrieb, werden Skills und aufgenommene Dokumente gelesen, bevor Sie danach fragen.',
    storeFault: (reason) => `Nichts, was jetzt gelesen wird, kommt auf die Platte: ${reason}`,
    numbers: {
      contextTokens: {
        label: 'Fenster',
        unit: 'Tokens',
        hint: 'Prompt und Antwort zusammen. Automatisch: das eigene des Modells, höchstens 8.192.',
      },
      threads: {
        label: 'Rechenfäden',
        unit: '',
        hint: 'Automatisch: einer für jeden Kern dieses Geräts.',
      },
      kvBudgetMegabytes: {
        label: 'Speicher für Kontext',
        unit: 'MB',
        hint: 'Fasst, was das Modell in allen Chats gelesen und geschrieben hat (KV). Mehr schafft Platz für mehr Antworten zugleich und für längere. Automatisch: ein Viertel des freien Speichers.',
      },
      memoryLimitMegabytes: {
        label: 'Speichergrenze',
        unit: 'MB',
        hint: 'Eine Antwort, mit der das Programm darüber käme, wird nicht begonnen. Automatisch: 80 % des Speichers dieses Geräts.',
      },
      recomputeRatio: {
        label: 'Neu berechneter Anteil',
        unit: '',
        hint: 'Von Text, der verschoben wurde. 0,35 wurde gut gemessen, und weniger davon in kurzen Prompts; an einen anderen Wert wird sich gehalten: Mehr ist näher am Lesen des Ganzen und dauert länger. 1 liest alles.',
      },
      diskBudgetMegabytes: {
        label: 'Platz auf der Platte',
        unit: 'MB',
        hint: 'Was am wenigsten benutzt wird, geht zuerst. Automatisch: ein Zehntel des freien Platzes, höchstens 8 GB. Eine Änderung lädt das Modell neu.',
      },
      temperature: {
        label: 'Temperatur',
        unit: '',
        hint: '0 nimmt immer das wahrscheinlichste Wort; höher ist freier.',
      },
      topP: {
        label: 'Top-p',
        unit: '',
        hint: 'Wählt unter den wahrscheinlichsten Wörtern, die zusammen diese Wahrscheinlichkeit haben; 1 sind alle.',
      },
      repetitionPenalty: {
        label: 'Abzug für Wiederholung',
        unit: '',
        hint: 'Macht Wörter des letzten Textes unwahrscheinlicher; 1 ist aus.',
      },
      maxAnswerTokens: {
        label: 'Längste Antwort',
        unit: 'Tokens',
        hint: 'Spätestens hier endet eine Antwort; so viel vom Fenster bleibt für sie frei.',
      },
    },
    automatic: 'Automatisch',
    problems: {
      empty: 'Hier fehlt eine Zahl.',
      notNumber: 'Das ist keine Zahl.',
      notWhole: 'Hier muss eine ganze Zahl stehen.',
      outOfBounds: '',
    },
    between: (least, most) => `Von ${least} bis ${most}.`,
    above: (bound, most) => `Über ${bound} und höchstens ${most}.`,
    resetSampling: 'Auf die Voreinstellung zurück',
    shortcuts: {
      newChat: 'Neuer Chat',
      search: 'Suchen',
      sidebar: 'Seitenleiste ein- oder ausblenden',
      panel: 'Kontextleiste ein- oder ausblenden',
      settings: 'Einstellungen',
      rename: 'Den Chat umbenennen',
      notices: 'Zu den Mitteilungen',
    },
    otherShortcuts: {
      send: { keys: 'Enter', label: 'Die Nachricht senden' },
      breakLine: { keys: 'Umschalt+Enter', label: 'Neue Zeile in der Nachricht' },
      stop: { keys: 'Esc', label: 'Schließen, was oben liegt, oder die Antwort anhalten' },
      mention: { keys: '@', label: 'Nach einem Dokument fragen' },
      skill: { keys: '/', label: 'Mit einem Skill beantworten' },
    },
    version: 'Programmversion',
    commit: 'Quellstand',
    dataFolder: 'Datenordner',
    eraseAll: 'Alles löschen …',
    eraseAllHint:
      'Alle Chats, alle hierher kopierten Dokumente und was aus ihnen gelesen wurde. Ihre eigenen Dateien, die Einstellungen und die Modelle bleiben.',
    eraseAllSure: 'Alles endgültig löschen?',
    eraseAllYes: 'Alles löschen',
    private: 'Alles, was Sie schreiben, bleibt in diesem Ordner auf diesem Gerät.',
  },

  link: {
    title: 'Diesen Link außerhalb von Reprise öffnen?',
    hint: 'Ihr Browser wird diese Adresse aufrufen:',
    punycode:
      'Dieser Name hat Buchstaben außerhalb des einfachen Alphabets und ahmt vielleicht einen anderen nach.',
    refused: 'Adressen dieser Art öffnet Reprise nicht.',
    open: 'Link öffnen',
  },

  toasts: {
    label: 'Mitteilungen',
    dismiss: 'Verwerfen',
    undo: 'Rückgängig',
    deleted: (title) => `„${title}“ wurde gelöscht.`,
    exported: (path) => `Gespeichert unter ${path}`,
  },

  errors: {
    draft: (reason) => `Der Entwurf konnte nicht gespeichert werden: ${reason}`,
    unexpected: (reason) => `Etwas ist schiefgegangen: ${reason}`,
  },
};

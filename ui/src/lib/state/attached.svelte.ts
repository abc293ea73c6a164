// What the next message is asked with beside its text: documents and skills, as chips above the text. Documents stay for
// the messages after it, for a person goes on asking about them; skills are for one message. They are kept with their
// chat, as the draft is.
import { attachFile, chips, listDocuments, messageOf, setChips } from '../api';
import type { Asked, Chips, DocumentShown, DocumentState, Indexing } from '../bindings';
import { strings } from '../strings';

/** A document that questions are about; without an id while its file is being copied. */
export type DocumentChip = { key: string; id: string | null; name: string; state: DocumentState };

const LOOK_AFTER_MS = 500;
const nothing: Asked = { documents: [], allDocuments: false, skills: [] };
const NOTHING = JSON.stringify(nothing);

/** The chips of the chat on show. */
export class Attached {
  documents = $state.raw<readonly DocumentChip[]>([]);
  allDocuments = $state(false);
  skills = $state.raw<readonly string[]>([]);
  /** A file is being copied into the program's folder; a message sent now would go without it. */
  readonly isCopying: boolean = $derived(this.documents.some(({ id }) => id === null));

  readonly #onFailure: (message: string) => void;
  #copies = 0;
  /** The chat on show; null is the one that does not exist yet, undefined none so far. */
  #chat: number | null | undefined;
  /** What is kept of it; null while that is not known. */
  #kept: string | null = null;
  /** One after the other, so that the last word is kept. */
  #keeping: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(onFailure: (message: string) => void = () => {}) {
    this.#onFailure = onFailure;
  }

  addDocument({ id, name, state }: DocumentShown): void {
    if (this.documents.some((chip) => chip.id === id)) return;
    this.documents = [...this.documents, { key: id, id, name, state }];
  }

  addSkill(name: string): void {
    if (!this.skills.includes(name)) this.skills = [...this.skills, name];
  }

  removeDocument(key: string): void {
    this.documents = this.documents.filter((chip) => chip.key !== key);
  }

  removeSkill(name: string): void {
    this.skills = this.skills.filter((one) => one !== name);
  }

  /** Copies files into the program's folder, one after the other, and adds them; each that cannot be had says why. */
  async attach(files: readonly File[]): Promise<void> {
    const copies = files.map((file) => ({ file, key: `copy-${++this.#copies}` }));
    const chips = copies.map(({ file, key }) => ({
      key,
      id: null,
      name: file.name,
      state: 'waiting' as const,
    }));
    this.documents = [...this.documents, ...chips];
    for (const { file, key } of copies) await this.#copy(file, key);
  }

  /** What a message that is sent now is asked with. */
  asked(): Asked {
    return {
      documents: this.documents.flatMap(({ id }) => (id === null ? [] : [id])),
      allDocuments: this.allDocuments,
      skills: [...this.skills],
    };
  }

  /** A message was sent: its skills are not the next one's. */
  sent(): void {
    this.skills = [];
  }

  /** Brings back the skills of a message that could not be sent. */
  giveBack({ skills }: Asked): void {
    for (const skill of skills) this.addSkill(skill);
  }

  /** Shows what is kept of a chat, or of the one that does not exist yet. */
  async show(chat: number | null): Promise<void> {
    if (chat === this.#chat) return;
    this.keep();
    this.#chat = chat;
    this.#kept = null;
    this.documents = [];
    this.allDocuments = false;
    this.skills = [];
    let kept: Chips | null = null;
    try {
      kept = await this.#keeping.then(() => chips(chat));
    } catch (error) {
      this.#onFailure(messageOf(error));
    }
    if (chat !== this.#chat) return;
    this.#kept = NOTHING;
    if (kept !== null) {
      const { documents, allDocuments, skills } = kept;
      this.#kept = JSON.stringify({ documents: documents.map(({ id }) => id), allDocuments, skills });
      for (const document of documents) this.addDocument(document);
      for (const skill of skills) this.addSkill(skill);
      if (allDocuments) this.allDocuments = true;
    }
    this.keep();
  }

  /** The chat that did not exist yet does now: what is picked goes along. */
  begun(chat: number): void {
    if (this.#kept !== NOTHING) this.#keepAs(null, nothing);
    this.#chat = chat;
    this.#kept = NOTHING;
    this.keep();
  }

  /** Keeps what has come or gone since the last time. */
  keep(): void {
    const chat = this.#chat;
    if (chat === undefined || this.#kept === null) return;
    const asked = this.asked();
    const now = JSON.stringify(asked);
    if (now === this.#kept) return;
    this.#kept = now;
    this.#keepAs(chat, asked);
  }

  /** The index is further: looks, a moment later, whether documents that were not read yet are now. */
  indexed(indexing: Indexing): void {
    void indexing;
    if (this.#timer !== null || !this.documents.some(isUnread)) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#look();
    }, LOOK_AFTER_MS);
  }

  async #look(): Promise<void> {
    for (const chip of this.documents.filter(isUnread)) {
      try {
        const { documents } = await listDocuments(chip.name, null, null);
        const now = documents.find(({ id }) => id === chip.id);
        if (now !== undefined) this.#change(chip.key, { state: now.state });
      } catch {
        // The next event asks again.
      }
    }
  }

  async #copy(file: File, key: string): Promise<void> {
    // Taken away before its turn came.
    if (!this.documents.some((chip) => chip.key === key)) return;
    try {
      const document = await attachFile(file.name, new Uint8Array(await file.arrayBuffer()));
      // It may have been taken away meanwhile, or be there already.
      if (this.documents.some(({ id }) => id === document.id)) this.removeDocument(key);
      else this.#change(key, { id: document.id, name: document.name, state: document.state });
    } catch (error) {
      this.removeDocument(key);
      this.#onFailure(strings.composer.notAttached(file.name, messageOf(error)));
    }
  }

  #keepAs(chat: number | null, asked: Asked): void {
    this.#keeping = this.#keeping
      .then(() => setChips(chat, asked))
      .catch((error: unknown) => this.#onFailure(messageOf(error)));
  }

  #change(key: string, change: Partial<DocumentChip>): void {
    this.documents = this.documents.map((chip) => (chip.key === key ? { ...chip, ...change } : chip));
  }
}

const isUnread = ({ id, state }: DocumentChip): boolean => id !== null && state === 'waiting';

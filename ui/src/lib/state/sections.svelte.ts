// Which sections of the panel are open: a habit of this window, kept by the web view like the closed folders.
const KEY = 'panel-sections';

/** The panel's sections, each with whether it is open at first. */
const atFirst = {
  window: true,
  lanes: true,
  pool: true,
  tiers: false,
  prefetch: false,
  images: false,
  components: false,
  memory: false,
  model: false,
};

/** A section of the panel. */
export type SectionId = keyof typeof atFirst;

/** The sections a person opened or closed. */
export class Sections {
  #chosen = $state.raw<Record<string, unknown>>(read());

  /** Whether the section is open. */
  isOpen(section: SectionId): boolean {
    const chosen = this.#chosen[section];
    return typeof chosen === 'boolean' ? chosen : atFirst[section];
  }

  /** Opens or closes a section. */
  toggle(section: SectionId): void {
    this.#chosen = { ...this.#chosen, [section]: !this.isOpen(section) };
    try {
      localStorage.setItem(KEY, JSON.stringify(this.#chosen));
    } catch {
      // Without storage the sections are as at first at the next start, and nothing else is lost.
    }
  }
}

function read(): Record<string, unknown> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return typeof stored === 'object' && stored !== null ? { ...stored } : {};
  } catch {
    return {};
  }
}

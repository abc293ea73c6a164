// How far the program is with the documents and with models that it fetches, as the last events told.
import type { AppEvent, Fetching, Indexing } from '../bindings';

export class Library {
  /** Null before the program told anything. */
  indexing = $state.raw<Indexing | null>(null);
  /** By model; one that has ended well is not there any more. */
  fetching = $state.raw<ReadonlyMap<string, Fetching>>(new Map());
  /** Counts the models that came. */
  fetched = $state(0);

  /** Takes what happened. */
  take(event: AppEvent): void {
    if (event.kind === 'documents') this.indexing = event.indexing;
    else if (event.kind === 'fetching') this.#fetched(event.fetching);
  }

  /** Takes away what is said of a model, as when its trouble was read. */
  forgetFetching(id: string): void {
    const fetching = new Map(this.fetching);
    fetching.delete(id);
    this.fetching = fetching;
  }

  #fetched(one: Fetching): void {
    if (one.isEnded && one.trouble === null) {
      this.forgetFetching(one.id);
      this.fetched += 1;
    } else this.fetching = new Map(this.fetching).set(one.id, one);
  }
}

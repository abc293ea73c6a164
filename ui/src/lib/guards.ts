// What must never happen to the page: a dropped file that replaces it, and a failure that nobody sees.

/** Keeps dropped files from navigating the window. Returns how to take it off again. */
export function keepDropsHarmless(target: Window): () => void {
  const refuse = (event: DragEvent): void => {
    // Text dragged within a field is the field's own business.
    if (
      event.dataTransfer !== null &&
      !event.dataTransfer.types.includes('Files') &&
      isEditable(event.target)
    ) {
      return;
    }
    // Whoever has a use for the files still gets the event; only the browser's own use of them is off.
    event.preventDefault();
  };
  target.addEventListener('dragover', refuse);
  target.addEventListener('drop', refuse);
  return () => {
    target.removeEventListener('dragover', refuse);
    target.removeEventListener('drop', refuse);
  };
}

/** Reports failures that nothing handled. Returns how to take it off again. */
export function reportFailures(target: Window, report: (error: unknown) => void): () => void {
  const onError = (event: ErrorEvent): void => {
    // Harmless and not ours: sizes that changed while sizes were being reported.
    if (event.message.startsWith('ResizeObserver loop')) return;
    report(event.error ?? event.message);
  };
  const onRejection = (event: PromiseRejectionEvent): void => report(event.reason);
  target.addEventListener('error', onError);
  target.addEventListener('unhandledrejection', onRejection);
  return () => {
    target.removeEventListener('error', onError);
    target.removeEventListener('unhandledrejection', onRejection);
  };
}

/** Shows the browser's own menu only where it is of use: on fields, on selected text and on links' text. */
export function keepMenuUseful(target: Window): () => void {
  const onMenu = (event: MouseEvent): void => {
    const hasSelection = target.getSelection()?.toString() !== '';
    if (!hasSelection && !isEditable(event.target)) event.preventDefault();
  };
  target.addEventListener('contextmenu', onMenu);
  return () => target.removeEventListener('contextmenu', onMenu);
}

function isEditable(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement ||
    target instanceof HTMLTextAreaElement ||
    (target instanceof HTMLElement && target.isContentEditable)
  );
}

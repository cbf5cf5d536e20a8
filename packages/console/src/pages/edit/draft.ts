/** Drafts are stored in the browser: one for each pipeline, with its mocks. */

export interface EditDraft {
  readonly text: string;
  /** Null: those of the definition, until they are changed. */
  readonly mocks: string | null;
}

function placeOf(name: string): string {
  return `capstan.draft.${name}`;
}

export function readDraft(name: string): EditDraft | null {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(placeOf(name)) ?? 'null');
    const draft = kept as EditDraft | null;
    return typeof draft?.text === 'string' && (draft.mocks === null || typeof draft.mocks === 'string')
      ? draft
      : null;
  } catch {
    return null;
  }
}

export function keepDraft(name: string, draft: EditDraft): void {
  localStorage.setItem(placeOf(name), JSON.stringify(draft));
}

export function dropDraft(name: string): void {
  localStorage.removeItem(placeOf(name));
}

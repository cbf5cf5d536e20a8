/** A short message about what was just done, which stays when the page changes. */
import { useSyncExternalStore } from 'react';

const shownMs = 10_000;

let notice = '';
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function set(text: string): void {
  notice = text;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function giveNotice(text: string): void {
  clearTimeout(timer);
  timer = setTimeout(() => set(''), shownMs);
  set(text);
}

/** Empty for none. */
export function useNotice(): string {
  return useSyncExternalStore(subscribe, () => notice);
}

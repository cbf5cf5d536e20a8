import { useEffect } from 'react';

/** The title of the tab: `(3) reel · Waiting for review · Capstan`. */
const shown = { page: '', waiting: 0 };

function apply(): void {
  const words = [shown.page, 'Capstan'].filter((word) => word !== '').join(' · ');
  document.title = shown.waiting === 0 ? words : `(${shown.waiting}) ${words}`;
}

/** Names the page in the tab, in the browser's history and in bookmarks. */
export function useTitle(page: string): void {
  useEffect(() => {
    shown.page = page;
    apply();
  }, [page]);
}

/** Number of open reviews. */
export function useTitleCount(waiting: number): void {
  useEffect(() => {
    shown.waiting = waiting;
    apply();
  }, [waiting]);
}

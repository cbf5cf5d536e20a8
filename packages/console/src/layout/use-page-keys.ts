import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { isTyping } from '../shared/keys.ts';
import { places } from './places.ts';

const goWithinMs = 1_200;

/** Ctrl-K, `g` and a letter, `/` for the page's filter, `?` for this list. */
export function usePageKeys({ onPalette, onHelp }: PageKeys): void {
  const navigate = useNavigate();
  /** Not 0: otherwise a page younger than the allowed time would take its first letter for the second. */
  const wentAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        onPalette();
        return;
      }
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === 'g') {
        wentAt.current = event.timeStamp;
      } else if (event.timeStamp - wentAt.current < goWithinMs) {
        wentAt.current = Number.NEGATIVE_INFINITY;
        const place = places.find(({ key }) => key === event.key);
        if (place === undefined) return;
        event.preventDefault();
        event.stopImmediatePropagation();
        void navigate({ to: place.to });
      } else if (event.key === '?') {
        onHelp();
      } else if (event.key === '/') {
        const filter = document.querySelector<HTMLElement>('[data-filter]');
        if (filter !== null) event.preventDefault();
        // A closed disclosure takes no focus.
        filter?.closest('details')?.setAttribute('open', '');
        filter?.focus();
      }
    };
    document.addEventListener('keydown', onKey, true);
    return () => document.removeEventListener('keydown', onKey, true);
  });
}

export interface PageKeys {
  readonly onPalette: () => void;
  readonly onHelp: () => void;
}

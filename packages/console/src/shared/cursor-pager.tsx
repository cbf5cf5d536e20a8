import type { ReactElement } from 'react';
import { Button } from './parts.tsx';

export interface CursorPagerProps {
  /** The cursors of the earlier pages, oldest first: none on the first page. */
  readonly cursors: readonly string[];
  /** The cursor of the next page; null on the last. */
  readonly nextCursor: string | null;
  /** The rows that are shown: `51 to 100 of 1,068`. */
  readonly place?: string;
  readonly onTurn: (cursors: string[]) => void;
}

/** Pages through a list, newest first. */
export function CursorPager({ cursors, nextCursor, place = '', onTurn }: CursorPagerProps): ReactElement {
  return (
    <nav aria-label="Pages" className="flex items-center justify-end gap-2 border-t border-line p-2">
      <span className="figure mr-auto pl-2 text-xs text-muted">{place}</span>
      <Button disabled={cursors.length === 0} onClick={() => onTurn(cursors.slice(0, -1))}>
        Newer
      </Button>
      <Button
        disabled={nextCursor === null}
        onClick={() => nextCursor === null || onTurn([...cursors, nextCursor])}
      >
        Older
      </Button>
    </nav>
  );
}

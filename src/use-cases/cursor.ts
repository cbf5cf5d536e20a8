/** Keyset cursors: the key of the last item, opaque to clients, so that a page never shifts under inserts. */
import { AppError } from '@capstan/core/errors/app-error';

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export function encodeCursor(key: string): string {
  return Buffer.from(key).toString('base64url');
}

export function refuseCursor(list = 'this list'): AppError {
  const message = `the cursor is not a next_cursor of ${list}; read the list from its start`;
  const item = {
    pointer: '/query/cursor',
    code: 'invalid_cursor',
    message: 'not a next_cursor of this list',
  };
  return new AppError('request_invalid', message, { errors: [item] });
}

/** @throws AppError `request_invalid` when the text is no cursor */
export function decodeCursor(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url').toString();
  if (key !== '' && encodeCursor(key) === cursor && !key.includes('\0')) return key;
  throw refuseCursor();
}

/** Reads the cursor of a list whose key is a number (bigint). @throws AppError `request_invalid` */
export function decodeNumberCursor(cursor: string): string {
  const key = decodeCursor(cursor);
  if (/^\d{1,18}$/.test(key)) return key;
  throw refuseCursor();
}

/** Makes a page of `limit` items from rows that were read with `limit + 1`. */
export function toPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  { key, item }: { key: (row: Row) => string; item: (row: Row) => Item },
): { items: Item[]; next_cursor: string | null } {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return { items: shown.map(item), next_cursor: last === undefined ? null : encodeCursor(key(last)) };
}

/** The user's settings for the list of runs, stored in this browser: named filters, and further columns. */
import { type RunsSearch, runsSearch } from '../../searches.ts';
import type { RawSearch } from '../../shared/search.ts';

export interface SavedView {
  readonly name: string;
  readonly search: RunsSearch;
}

export const furtherColumns = ['labels', 'trigger'] as const;
export type FurtherColumn = (typeof furtherColumns)[number];

const places = { views: 'capstan.runs.views', columns: 'capstan.runs.columns' } as const;

function readList(place: string): readonly unknown[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(place) ?? '[]');
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

export function readViews(): readonly SavedView[] {
  return readList(places.views).flatMap((kept) => {
    const { name, search } = (kept ?? {}) as { readonly name?: unknown; readonly search?: unknown };
    if (typeof name !== 'string' || typeof search !== 'object' || search === null) return [];
    return [{ name, search: runsSearch(search as RawSearch) }];
  });
}

/** Replaces one of the same name. */
export function withView(views: readonly SavedView[], view: SavedView): readonly SavedView[] {
  return [...views.filter(({ name }) => name !== view.name), view].sort((a, b) =>
    a.name.localeCompare(b.name),
  );
}

export function keepViews(views: readonly SavedView[]): void {
  localStorage.setItem(places.views, JSON.stringify(views));
}

export function readColumns(): ReadonlySet<FurtherColumn> {
  const kept = readList(places.columns);
  return new Set(furtherColumns.filter((column) => kept.includes(column)));
}

export function keepColumns(columns: ReadonlySet<FurtherColumn>): void {
  localStorage.setItem(places.columns, JSON.stringify([...columns]));
}

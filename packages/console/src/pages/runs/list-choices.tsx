import { Link } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, type ReactNode, useState } from 'react';
import type { RunsSearch } from '../../searches.ts';
import { Button, buttonClass, fieldClass } from '../../shared/parts.tsx';
import {
  type FurtherColumn,
  furtherColumns,
  keepViews,
  readViews,
  type SavedView,
  withView,
} from './views.ts';

function Menu({ name, children }: { readonly name: string; readonly children: ReactNode }): ReactElement {
  return (
    <details className="relative text-sm">
      <summary className={`${buttonClass('bare')} cursor-pointer list-none`}>{name}</summary>
      <div className="absolute right-0 z-20 mt-1 flex w-64 max-w-[80vw] flex-col gap-2 rounded-lg border border-line bg-surface p-3 shadow-lg">
        {children}
      </div>
    </details>
  );
}

/** Named filters. Each is a link, so it opens in a new tab and can be shared. */
export function ViewMenu({ search }: { readonly search: RunsSearch }): ReactElement {
  const [views, setViews] = useState(readViews);
  const change = (next: readonly SavedView[]): void => {
    keepViews(next);
    setViews(next);
  };
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get('name') ?? '').trim();
    if (name !== '') change(withView(views, { name, search }));
    event.currentTarget.reset();
  };
  return (
    <Menu name="Views">
      {views.length === 0 ? (
        <p className="text-muted">A view is the current filters under a name, kept in this browser.</p>
      ) : (
        <ul aria-label="Saved views" className="flex flex-col">
          {views.map(({ name, search: kept }) => (
            <li key={name} className="flex items-center gap-1">
              <Link
                to="/runs"
                search={kept}
                className="min-w-0 flex-1 truncate rounded px-1 py-1 hover:bg-sunken"
              >
                {name}
              </Link>
              <Button
                look="bare"
                icon="x"
                aria-label={`Forget the view ${name}`}
                onClick={() => change(views.filter((view) => view.name !== name))}
              />
            </li>
          ))}
        </ul>
      )}
      <form onSubmit={save} className="flex gap-2 border-t border-line pt-2">
        <input
          name="name"
          required
          maxLength={60}
          aria-label="Name of the view"
          placeholder="Name"
          className={`${fieldClass} min-w-0 flex-1`}
        />
        <Button type="submit">Save</Button>
      </form>
    </Menu>
  );
}

const columnWords: Readonly<Record<FurtherColumn, string>> = { labels: 'Labels', trigger: 'Trigger' };

export interface ColumnMenuProps {
  readonly columns: ReadonlySet<FurtherColumn>;
  readonly onChange: (columns: ReadonlySet<FurtherColumn>) => void;
}

export function ColumnMenu({ columns, onChange }: ColumnMenuProps): ReactElement {
  const toggle = (column: FurtherColumn): void => {
    const next = new Set(columns);
    if (!next.delete(column)) next.add(column);
    onChange(next);
  };
  return (
    <Menu name="Columns">
      {furtherColumns.map((column) => (
        <label key={column} className="flex items-center gap-2">
          <input type="checkbox" checked={columns.has(column)} onChange={() => toggle(column)} />
          {columnWords[column]}
        </label>
      ))}
    </Menu>
  );
}

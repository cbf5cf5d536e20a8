import type { BrowserSession } from '@capstan/core/contracts/sign-in';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { signOut } from '../api/session.ts';
import { zone } from '../shared/format.ts';
import { Icon } from '../shared/icon.tsx';
import { places } from './places.ts';

export function SideBar({ session, waiting }: SideBarProps): ReactElement {
  const queries = useQueryClient();
  const leave = (): void => {
    const read = (): Promise<void> => queries.resetQueries({ queryKey: ['session'] });
    signOut().then((closed) => (closed === '' ? read() : location.assign(closed.provider_url)), read);
  };
  return (
    <aside className="sticky top-0 hidden h-dvh w-52 shrink-0 flex-col border-r border-line bg-surface px-2.5 py-3 md:flex">
      <Link to="/" className="mb-4 flex items-center gap-2.5 px-2 text-lg font-semibold tracking-tight">
        <img src="/ui/icon.svg" alt="" width="24" height="24" />
        Capstan
      </Link>
      <nav aria-label="Places" className="flex flex-col gap-0.5">
        {places.map(({ to, name, icon }) => (
          <Link
            key={to}
            to={to}
            activeOptions={{ exact: to === '/' }}
            className="flex h-8 items-center gap-2.5 rounded-md px-2 text-sm text-muted hover:bg-sunken hover:text-text"
            activeProps={{ className: 'bg-accent-soft! text-accent! font-medium', 'aria-current': 'page' }}
          >
            <Icon name={icon} size={16} />
            <span className="flex-1">{name}</span>
            {to === '/reviews' && waiting > 0 ? (
              <span className="figure rounded-full bg-person px-1.5 text-xs font-semibold leading-5 text-surface">
                {waiting}
              </span>
            ) : null}
          </Link>
        ))}
      </nav>
      <div className="mt-auto border-t border-line px-2 pt-3 text-xs text-muted">
        <p className="truncate" title={session.person?.email ?? session.key_id}>
          Signed in as <span className="font-medium text-text">{session.name}</span>
        </p>
        <p className="mt-1 truncate" title="Hover over a time to see it exactly; copy it to get it in UTC.">
          Times in {zone}
        </p>
        <div className="mt-1.5 flex items-center justify-between">
          <a href="/docs" className="hover:text-text hover:underline">
            API
          </a>
          <span className="figure">{session.version}</span>
          <button type="button" onClick={leave} className="inline-flex items-center gap-1 hover:text-text">
            <Icon name="log-out" size={13} /> Sign out
          </button>
        </div>
      </div>
    </aside>
  );
}

export interface SideBarProps {
  readonly session: BrowserSession;
  readonly waiting: number;
}

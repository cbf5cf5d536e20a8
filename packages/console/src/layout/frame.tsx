import type { BrowserSession } from '@capstan/core/contracts/sign-in';
import { Link, Outlet } from '@tanstack/react-router';
import { type MouseEvent, type ReactElement, Suspense, useState } from 'react';
import { readProject } from '../api/project.ts';
import { LiveProvider } from '../live/live.tsx';
import { Icon } from '../shared/icon.tsx';
import { latePart } from '../shared/late-part.tsx';
import { useNotice } from '../shared/notice.ts';
import { Button } from '../shared/parts.tsx';
import { AwayBanner, ContactMark } from './contact-mark.tsx';
import type { PaletteAction } from './palette-model.ts';
import { placesBelow, placesInMenu } from './places.ts';
import { ProjectChoice } from './project-choice.tsx';
import { SideBar } from './side-bar.tsx';
import { ThemeSwitch } from './theme-switch.tsx';
import { usePageKeys } from './use-page-keys.ts';
import { useReviewCount } from './use-review-count.ts';

const Palette = latePart(() => import('./palette.tsx'), 'Palette');
const KeyHelp = latePart(() => import('./key-help.tsx'), 'KeyHelp');

const ActionDialog = latePart(() => import('./palette-action.tsx'), 'ActionDialog');

/** The frame of every page. */
export function Frame({ session }: { readonly session: BrowserSession }): ReactElement {
  return (
    <LiveProvider project={readProject() ?? session.projects[0]?.project_id ?? ''}>
      <Inside session={session} />
    </LiveProvider>
  );
}

function Inside({ session }: { readonly session: BrowserSession }): ReactElement {
  const [open, setOpen] = useState<'palette' | 'keys' | PaletteAction | null>(null);
  const waiting = useReviewCount();
  usePageKeys({ onPalette: () => setOpen('palette'), onHelp: () => setOpen('keys') });
  return (
    <div className="flex min-h-dvh">
      <a
        href="#main"
        className="fixed left-2 top-2 z-50 -translate-y-16 rounded-md bg-accent px-3 py-1.5 text-sm text-on-accent focus:translate-y-0"
      >
        Skip to content
      </a>
      <SideBar session={session} waiting={waiting} />
      <div className="flex min-w-0 flex-1 flex-col">
        <header className="sticky top-0 z-30 flex h-12 items-center gap-2 border-b border-line bg-ground/95 px-4 md:px-6">
          <Link to="/" aria-label="Capstan, home" className="md:hidden">
            <img src="/ui/icon.svg" alt="" width="24" height="24" />
          </Link>
          <Button
            onClick={() => setOpen('palette')}
            className="min-w-0 justify-start text-muted sm:w-72"
            icon="search"
          >
            <span className="flex-1 text-left max-sm:sr-only">Search or run a command …</span>
            <kbd className="hidden rounded border border-line px-1 font-mono text-xs sm:inline">Ctrl K</kbd>
          </Button>
          <span className="flex-1" />
          <ContactMark />
          <ProjectChoice session={session} />
          <ThemeSwitch />
        </header>
        <main
          id="main"
          tabIndex={-1}
          className="min-w-0 flex-1 px-4 pb-24 pt-5 outline-none md:px-6 md:pb-10"
        >
          <AwayBanner />
          <NoticeBar />
          <Outlet />
        </main>
      </div>
      <BottomBar waiting={waiting} />
      <Suspense>
        {open === 'palette' ? <Palette onClose={() => setOpen(null)} onAct={setOpen} /> : null}
        {open === 'keys' ? <KeyHelp onClose={() => setOpen(null)} /> : null}
        {open !== null && typeof open === 'object' ? (
          <ActionDialog
            action={open}
            // Another one may have been opened before the response arrived.
            onClose={() => setOpen((now) => (now === open ? null : now))}
          />
        ) : null}
      </Suspense>
    </div>
  );
}

/** The region is always there: screen readers announce only what appears in a known one. */
function NoticeBar(): ReactElement {
  const notice = useNotice();
  return (
    <p role="status" className="mb-3 rounded-lg bg-done-soft px-3 py-2 text-sm text-done empty:hidden">
      {notice}
    </p>
  );
}

function BottomBar({ waiting }: { readonly waiting: number }): ReactElement {
  return (
    <nav
      aria-label="Places"
      className="fixed inset-x-0 bottom-0 z-30 flex border-t border-line bg-surface pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      {placesBelow.map(({ to, name, icon }) => (
        <Link
          key={to}
          to={to}
          activeOptions={{ exact: to === '/' }}
          className="relative flex flex-1 flex-col items-center gap-0.5 py-1.5 text-xs text-muted"
          activeProps={{ className: 'text-accent font-medium' }}
        >
          <Icon name={icon} size={19} />
          {name}
          {to === '/reviews' && waiting > 0 ? (
            <span className="figure absolute right-[22%] top-0.5 rounded-full bg-person px-1.5 text-xs font-semibold text-surface">
              {waiting}
            </span>
          ) : null}
        </Link>
      ))}
      <PlaceMenu />
    </nav>
  );
}

/** The places that have no room in the bar. */
function PlaceMenu(): ReactElement {
  const close = (event: MouseEvent): void => event.currentTarget.closest('details')?.removeAttribute('open');
  return (
    <details className="relative flex-1 text-xs text-muted">
      <summary className="flex cursor-pointer list-none flex-col items-center gap-0.5 py-1.5">
        <Icon name="menu" size={20} />
        More
      </summary>
      <ul className="absolute bottom-full right-1 mb-1 w-48 rounded-lg border border-line bg-surface p-1 shadow-lg">
        {placesInMenu.map(({ to, name, icon }) => (
          <li key={to}>
            <Link
              to={to}
              onClick={close}
              className="flex h-10 items-center gap-2.5 rounded-md px-3 text-sm hover:bg-sunken"
              activeProps={{ className: 'text-accent font-medium' }}
            >
              <Icon name={icon} size={16} />
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </details>
  );
}

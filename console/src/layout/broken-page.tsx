/**
 * Replaces a failed page or panel: it shows the error and keeps the navigation. A missing file of the page, as after an
 * update of the server, is reloaded once automatically.
 */
import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { Component, type ReactElement, type ReactNode } from 'react';
import { Button, buttonClass } from '../shared/parts.tsx';

/** The browsers' messages for a module that failed to load; none of them has an error name for it. */
const lostFile =
  /dynamically imported module|Importing a module script failed|error loading dynamically|Unable to preload/i;

function isLostFile(error: unknown): boolean {
  return error instanceof Error && lostFile.test(error.message);
}

const reloadedAt = 'capstan.reloaded';
/** Two reloads within this would be a loop. */
const loopMs = 30_000;

/** After an update the files of the page have other names, which the reloaded page knows. */
function reloadOnce(now = Date.now()): boolean {
  const last = Number(sessionStorage.getItem(reloadedAt) ?? 0);
  if (now - last < loopMs) return false;
  sessionStorage.setItem(reloadedAt, String(now));
  location.reload();
  return true;
}

/** Vite emits an event before it throws: a missing file reloads the page once. */
export function followLostFiles(): void {
  addEventListener('vite:preloadError', (event) => {
    if (reloadOnce()) event.preventDefault();
  });
}

interface BrokenProps {
  readonly error: unknown;
  readonly onRetry: () => void;
}

function Broken({ error, onRetry }: BrokenProps): ReactElement {
  // React never retries a part that failed to load: only a reload requests it again.
  const isLost = isLostFile(error);
  return (
    <div
      role="alert"
      className="mx-auto my-6 max-w-xl rounded-lg border border-line bg-failed-soft p-4 text-sm"
    >
      <h2>{isLost ? 'A part of this page could not be loaded' : 'This part of the page failed'}</h2>
      <p className="mt-1 break-words text-muted">
        {isLost
          ? 'The server is away, or it was updated since you opened the page. Nothing that you have stored is lost.'
          : String((error as Error)?.message ?? error)}
      </p>
      <div className="mt-3 flex flex-wrap gap-2">
        {isLost ? null : <Button onClick={onRetry}>Try again</Button>}
        <Button look="primary" onClick={() => location.reload()}>
          Reload the page
        </Button>
      </div>
    </div>
  );
}

/** Replaces a route's page. */
export function BrokenPage({ error, reset }: ErrorComponentProps): ReactElement {
  return (
    <>
      <Broken error={error} onRetry={reset} />
      <p className="text-center text-sm">
        <Link to="/" className={buttonClass('bare')}>
          Home
        </Link>
      </p>
    </>
  );
}

interface PanelBoundaryProps {
  readonly children: ReactNode;
  /** A change retries the failed part. */
  readonly of: string;
}

/** Keeps a failure within the panel where it happens. */
export class PanelBoundary extends Component<PanelBoundaryProps, { readonly error: unknown }> {
  override state: { readonly error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override componentDidUpdate(before: PanelBoundaryProps): void {
    if (before.of !== this.props.of && this.state.error !== null) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <Broken error={error} onRetry={() => this.setState({ error: null })} />;
  }
}

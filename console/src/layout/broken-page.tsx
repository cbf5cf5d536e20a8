/**
 * What is shown where a page or a panel fails: what went wrong, with the navigation kept. A file of the page that is gone,
 * as after an update of the server, is loaded anew once by itself.
 */
import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { Component, type ReactElement, type ReactNode } from 'react';
import { Button, buttonClass } from '../shared/parts.tsx';

/** The browsers' words for a module that they could not load; none of them gives it a name of its own. */
const lostFile =
  /dynamically imported module|Importing a module script failed|error loading dynamically|Unable to preload/i;

function isLostFile(error: unknown): boolean {
  return error instanceof Error && lostFile.test(error.message);
}

const reloadedAt = 'capstan.reloaded';
/** Two reloads within this would be a loop. */
const loopMs = 30_000;

/** After an update the files of the page have other names: the page as it is now knows them. */
function reloadOnce(now = Date.now()): boolean {
  const last = Number(sessionStorage.getItem(reloadedAt) ?? 0);
  if (now - last < loopMs) return false;
  sessionStorage.setItem(reloadedAt, String(now));
  location.reload();
  return true;
}

/** Vite asks before it throws: a file that is gone reloads the page once. */
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
  // React keeps a part that could not be loaded as lost: only a reload asks for it again.
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

/** In place of a route's page. */
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
  /** When it changes, what failed before is tried anew. */
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

/**
 * Replaces a failed page or panel: it shows the error and keeps the navigation.
 */
import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { Component, type ReactElement, type ReactNode } from 'react';
import { LostFile } from '../shared/late-part.tsx';
import { Button, buttonClass } from '../shared/parts.tsx';

interface BrokenProps {
  readonly error: unknown;
  readonly onRetry: () => void;
}

function Broken({ error, onRetry }: BrokenProps): ReactElement {
  // React never retries a part that failed to load: only a reload requests it again.
  const isLost = error instanceof LostFile;
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

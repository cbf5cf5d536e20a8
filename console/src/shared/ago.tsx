import type { ReactElement } from 'react';
import { formatAgo, formatExact } from './time.ts';
import { useNow } from './use-now.ts';

/** How long ago, with the moment on hover. */
export function Ago({ at }: { readonly at: string }): ReactElement {
  const now = useNow();
  return (
    <time dateTime={at} title={formatExact(at)} className="figure whitespace-nowrap">
      {formatAgo(at, now)}
    </time>
  );
}

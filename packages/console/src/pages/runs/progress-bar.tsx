import type { ReactElement } from 'react';
import type { ShownProgress } from './model.ts';

export function ProgressBar({
  progress: { done, all, failed, begun },
}: {
  readonly progress: ShownProgress;
}): ReactElement {
  const share = (count: number): string => `${(100 * count) / all}%`;
  return (
    <div
      className="flex items-center gap-2"
      title={[
        `${done} of ${all} steps succeeded`,
        ...(failed === 0 ? [] : [`${failed} failed`]),
        ...(begun === 0 ? [] : [`${begun} begun`]),
      ].join(', ')}
    >
      <div className="flex h-1.5 w-20 overflow-hidden rounded-full bg-quiet-soft">
        <div className="bg-done" style={{ width: share(done) }} />
        <div className="bg-failed" style={{ width: share(failed) }} />
        <div className="bg-running/40" style={{ width: share(begun) }} />
      </div>
      <span className="figure text-xs text-muted">
        {done}/{all}
      </span>
    </div>
  );
}

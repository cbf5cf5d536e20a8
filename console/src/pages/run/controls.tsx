import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, type ReactElement, Suspense, useState } from 'react';
import type { Run } from '../../../../src/contracts/run.ts';
import { type AskedControl, controlRun } from '../../api/runs.ts';
import { Button } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { controlsOf } from './model.ts';

const RerunDialog = lazy(() =>
  import('./rerun-dialog.tsx').then(({ RerunDialog }) => ({ default: RerunDialog })),
);
const CancelDialog = lazy(() =>
  import('./cancel-dialog.tsx').then(({ CancelDialog }) => ({ default: CancelDialog })),
);
const RaiseDialog = lazy(() =>
  import('./raise-dialog.tsx').then(({ RaiseDialog }) => ({ default: RaiseDialog })),
);

/** What can be asked of the run as it is. */
export function RunControls({ run }: { readonly run: Run }): ReactElement {
  const queries = useQueryClient();
  const [open, setOpen] = useState<'rerun' | 'raise' | 'cancel' | null>(null);
  const can = controlsOf(run);
  const control = useMutation({
    mutationFn: (what: AskedControl) => controlRun(run.run_id, what),
    onSettled: () => queries.invalidateQueries({ queryKey: ['run', run.run_id] }),
  });
  const button = (what: AskedControl, text: string, icon: 'pause' | 'play'): ReactElement => (
    <Button icon={icon} disabled={control.isPending} onClick={() => control.mutate(what)}>
      {text}
    </Button>
  );
  return (
    <div className="flex flex-wrap items-center gap-2">
      {can.canPause ? button('pause', 'Pause', 'pause') : null}
      {can.canResume ? button('resume', 'Resume', 'play') : null}
      {can.canRaise ? (
        <Button icon="coins" onClick={() => setOpen('raise')}>
          Budget …
        </Button>
      ) : null}
      {can.canCancel ? (
        <Button icon="square" look="danger" onClick={() => setOpen('cancel')}>
          Cancel …
        </Button>
      ) : null}
      {can.canRerun ? (
        <Button icon="rotate-cw" onClick={() => setOpen('rerun')}>
          Run again …
        </Button>
      ) : null}
      {control.error === null ? null : <ProblemView error={control.error} />}
      <Suspense>
        {open === 'rerun' ? <RerunDialog run={run} onClose={() => setOpen(null)} /> : null}
        {open === 'cancel' ? <CancelDialog run={run} onClose={() => setOpen(null)} /> : null}
        {open === 'raise' ? <RaiseDialog run={run} onClose={() => setOpen(null)} /> : null}
      </Suspense>
    </div>
  );
}

import type { Run } from '@capstan/core/contracts/run';
import type { RunCondition } from '@capstan/core/run/run-status';
import { type ReactElement, useState } from 'react';
import { type AskedControl, controlRun } from '../../api/runs.ts';
import { Button } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { controlsOf, nextStepsOf } from './model.ts';
import { RunDialog, type RunDialogKind } from './run-dialogs.tsx';
import { useRunChange } from './use-run-change.ts';

interface RunControlsProps {
  readonly run: Run;
  readonly condition: RunCondition;
}

/** The actions that the run's state allows, without one that the bar below offers. */
export function RunControls({ run, condition }: RunControlsProps): ReactElement {
  const [open, setOpen] = useState<RunDialogKind | null>(null);
  const can = controlsOf(run);
  const isOffered = nextStepsOf(run, condition).some(({ kind }) => kind === 'retry');
  const control = useRunChange(run.run_id, (what: AskedControl) => controlRun(run.run_id, what));
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
      {can.canRerun && !isOffered ? (
        <Button icon="rotate-cw" onClick={() => setOpen('rerun')}>
          Run again …
        </Button>
      ) : null}
      {control.error === null ? null : <ProblemView error={control.error} />}
      {open === null ? null : <RunDialog kind={open} run={run} onClose={() => setOpen(null)} />}
    </div>
  );
}

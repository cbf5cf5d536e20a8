/** The dialogs of a run's actions. */
import { lazy, type ReactElement, Suspense } from 'react';
import type { RunDialogProps } from './use-run-change.ts';

const dialogs = {
  rerun: lazy(() => import('./rerun-dialog.tsx').then(({ RerunDialog }) => ({ default: RerunDialog }))),
  cancel: lazy(() => import('./cancel-dialog.tsx').then(({ CancelDialog }) => ({ default: CancelDialog }))),
  raise: lazy(() => import('./raise-dialog.tsx').then(({ RaiseDialog }) => ({ default: RaiseDialog }))),
} as const;

export type RunDialogKind = keyof typeof dialogs;

/** Its code is loaded when it is first opened. */
export function RunDialog({
  kind,
  ...props
}: RunDialogProps & { readonly kind: RunDialogKind }): ReactElement {
  const Dialog = dialogs[kind];
  return (
    <Suspense>
      <Dialog {...props} />
    </Suspense>
  );
}

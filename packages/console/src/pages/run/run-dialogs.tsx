/** The dialogs of a run's actions. */
import { type ReactElement, Suspense } from 'react';
import { latePart } from '../../shared/late-part.tsx';
import type { RunDialogProps } from './use-run-change.ts';

const dialogs = {
  rerun: latePart(() => import('./rerun-dialog.tsx'), 'RerunDialog'),
  cancel: latePart(() => import('./cancel-dialog.tsx'), 'CancelDialog'),
  raise: latePart(() => import('./raise-dialog.tsx'), 'RaiseDialog'),
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

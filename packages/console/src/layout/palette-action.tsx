import { useQuery } from '@tanstack/react-query';
import { type ReactElement, Suspense } from 'react';
import { pipelineQuery } from '../api/pipelines.ts';
import { runQuery } from '../api/runs.ts';
import { latePart } from '../shared/late-part.tsx';
import type { PaletteAction } from './palette-model.ts';

const CancelDialog = latePart(() => import('../pages/run/cancel-dialog.tsx'), 'CancelDialog');
const StartDialog = latePart(() => import('../pages/pipeline/start-dialog.tsx'), 'StartDialog');

export interface ActionDialogProps {
  readonly action: PaletteAction;
  readonly onClose: () => void;
}

/** The action chosen in the palette, with the dialog of the run's or the pipeline's page. */
export function ActionDialog({ action, onClose }: ActionDialogProps): ReactElement {
  return (
    <Suspense>
      {action.kind === 'cancel' ? (
        <Cancel runId={action.runId} onClose={onClose} />
      ) : (
        <Start pipeline={action.pipeline} onClose={onClose} />
      )}
    </Suspense>
  );
}

interface DialogOf {
  readonly onClose: () => void;
}

function Cancel({ runId, onClose }: DialogOf & { readonly runId: string }): ReactElement | null {
  const run = useQuery(runQuery(runId)).data;
  return run === undefined ? null : <CancelDialog run={run} onClose={onClose} />;
}

function Start({ pipeline, onClose }: DialogOf & { readonly pipeline: string }): ReactElement | null {
  const stored = useQuery(pipelineQuery(pipeline)).data;
  return stored === undefined ? null : <StartDialog stored={stored} onClose={onClose} />;
}

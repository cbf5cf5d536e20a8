import { type UseMutationResult, useMutation, useQueryClient } from '@tanstack/react-query';
import type { Run } from '../../../../src/contracts/run.ts';

export interface RunDialogProps {
  readonly run: Run;
  /** Of a rerun: the step from which on it was asked for. */
  readonly from?: string;
  readonly onClose: () => void;
}

/** Changes the run, and reads it again. @param onDone after a change that was taken */
export function useRunChange<Asked>(
  runId: string,
  change: (asked: Asked) => Promise<unknown>,
  onDone?: () => void,
): UseMutationResult<unknown, Error, Asked> {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => queries.invalidateQueries({ queryKey: ['run', runId] }),
    onSuccess: onDone,
  });
}

import type { Run } from '@capstan/core/contracts/run';
import { type UseMutationResult, useMutation, useQueryClient } from '@tanstack/react-query';

export interface RunDialogProps {
  readonly run: Run;
  /** For a rerun: the step that it starts from. */
  readonly from?: string;
  readonly onClose: () => void;
}

/** Changes the run, and fetches it again. @param onDone after an accepted change */
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

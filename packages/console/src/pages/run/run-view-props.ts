import type { Run } from '@capstan/core/contracts/run';
import type { runSearch } from '../../searches.ts';

export type RunSearchState = ReturnType<typeof runSearch>;

/** The properties of every view of a run: all share one selection. */
export interface RunViewProps {
  readonly run: Run;
  readonly search: RunSearchState;
  readonly onSearch: (part: Partial<RunSearchState>) => void;
}

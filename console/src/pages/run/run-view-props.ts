import type { Run } from '../../../../src/contracts/run.ts';
import type { runSearch } from '../../searches.ts';

export type RunSearchState = ReturnType<typeof runSearch>;

/** What a view of a run gets: the same selection in all of them. */
export interface RunViewProps {
  readonly run: Run;
  readonly search: RunSearchState;
  readonly onSearch: (part: Partial<RunSearchState>) => void;
}

/** How runs stand, for those who watch a project. */
import type { RunFrame, StreamFrame } from '../../contracts/stream.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import {
  type LogSpan,
  listChangedRuns,
  listRunStandings,
  type RunStandingRow,
} from '../../db/run/run-changes.ts';
import { createStepCounter } from '../runs/count-steps.ts';

/** Of one poll; the others follow when something else happens to them. */
const mostRuns = 500;

function toFrame(row: RunStandingRow): RunFrame {
  return {
    run_id: row.run_id,
    pipeline: row.pipeline,
    state: row.state,
    awaiting: [...row.awaiting],
    ...(row.follows === null ? {} : { follows: row.follows }),
    ...(row.error === null ? {} : { error: row.error }),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    steps: { ...row.step_counts },
  };
}

export type ReadRunFrames = (
  projectId: string,
  span: LogSpan & { readonly endedSince: Date },
) => Promise<readonly StreamFrame[]>;

export function createRunFrames(db: Db): ReadRunFrames {
  const countSteps = createStepCounter(db);
  return async (projectId, span) => {
    const changed = await listChangedRuns(db, projectId, { ...span, limit: mostRuns });
    const rows = await countSteps(await listRunStandings(db, changed));
    return rows.map((row) => ({ kind: 'run', data: toFrame(row) }));
  };
}

/** How runs stand, for those who watch a project. */
import { LRUCache } from 'lru-cache';
import type { StepState } from '../../contracts/run.ts';
import type { RunFrame, StreamFrame } from '../../contracts/stream.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import {
  countDefinitionSteps,
  type LogSpan,
  listChangedRuns,
  listRunStandings,
  type RunStandingRow,
} from '../../db/run/run-changes.ts';

/** Of one poll; the others follow when something else happens to them. */
const mostRuns = 500;

function toFrame(row: RunStandingRow, size: number): RunFrame {
  const begun = Object.values(row.steps).reduce((sum, count) => sum + count, 0);
  const steps: Partial<Record<StepState, number>> = { ...row.steps };
  if (size > begun) steps.pending = size - begun;
  return {
    run_id: row.run_id,
    pipeline: row.pipeline,
    state: row.state,
    awaiting: [...row.awaiting],
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    steps,
  };
}

export type ReadRunFrames = (
  projectId: string,
  span: LogSpan & { readonly endedSince: Date },
) => Promise<readonly StreamFrame[]>;

export function createRunFrames(db: Db): ReadRunFrames {
  const sizes = new LRUCache<string, number>({ max: 1_000 });
  const learnSizes = async (rows: readonly RunStandingRow[]): Promise<void> => {
    const unknown = new Set(rows.map(({ digest }) => digest).filter((digest) => !sizes.has(digest)));
    if (unknown.size === 0) return;
    for (const [digest, steps] of await countDefinitionSteps(db, [...unknown])) sizes.set(digest, steps);
  };
  return async (projectId, span) => {
    const changed = await listChangedRuns(db, projectId, { ...span, limit: mostRuns });
    const rows = await listRunStandings(db, changed);
    await learnSizes(rows);
    return rows.map((row) => ({ kind: 'run', data: toFrame(row, sizes.get(row.digest) ?? 0) }));
  };
}

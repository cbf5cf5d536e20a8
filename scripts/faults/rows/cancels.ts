/** Runs that are cancelled at random moments. */
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile99 } from '../../../bench/engine/statistics.ts';
import type { Db } from '../../../src/db/connect.ts';
import { playUnderLoad, type Round, type Stage } from '../play.ts';
import { atLeast, atMost, joinVerdicts, type Verdict } from '../verdict.ts';

const latestMs = 3_000;

async function cancelEach({ stage, client, isOver }: Round): Promise<Verdict> {
  const seen = new Set<string>();
  const under: Promise<number>[] = [];
  const cancel = async (id: string): Promise<number> => {
    await sleep(Math.random() * latestMs);
    return (await stage.api.request('POST', `/v1/runs/${id}/cancel`, {})).status;
  };
  for (let isLast = false; !isLast; ) {
    isLast = isOver();
    const fresh = [...client.submissions.runs.keys()].filter((id) => !seen.has(id));
    for (const id of fresh) under.push(cancel(id));
    for (const id of fresh) seen.add(id);
    await sleep(50);
  }
  const refused = (await Promise.all(under)).filter((status) => status >= 500);
  return { figures: { cancels: under.length }, breaches: refused.map((status) => `a cancel: ${status}`) };
}

interface Ended {
  readonly run_id: string;
  readonly state: string;
  readonly took_s: number;
  readonly finished_at: Date;
}

async function auditCancels({ client, fleet, pipeline }: Round, db: Db): Promise<Verdict> {
  const rows: Ended[] = await db('run')
    .where({ pipeline })
    .whereNotNull('cancel_requested_at')
    .select('run_id', 'state', 'finished_at')
    .select(db.raw('extract(epoch from finished_at - cancel_requested_at)::float8 as took_s'));
  const cancelled = rows.filter(({ state }) => state === 'cancelled');
  const ends = new Map(
    rows.map(({ run_id, finished_at }) => [client.submissions.runs.get(run_id), finished_at.getTime()]),
  );
  const late = fleet.lines.filter(({ kind, n, at }) => kind === 'begin' && at > (ends.get(n) ?? Infinity));
  return joinVerdicts([
    atLeast('runs cancelled', cancelled.length, 1),
    atMost('99 of 100 ended after s', percentile99(rows.map(({ took_s }) => took_s)), 10),
    atMost('calls begun after their run had ended', late.length, 0),
  ]);
}

export function cancelRuns(stage: Stage): Promise<Verdict> {
  const [count, pace] = stage.isLong ? [500, 10] : [80, 8];
  const load = { name: 'cancels', count, pace, withCancels: true, fleet: { minMs: 200, maxMs: 800 } };
  return playUnderLoad(stage, load, { disturb: cancelEach, audit: auditCancels });
}

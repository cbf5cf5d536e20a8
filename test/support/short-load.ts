/**
 * Runs of short steps that have a price, in sequence, in parallel and by item, with the expected result computed
 * without the engine; and the invariants of their calls afterwards.
 */
import type { Json } from '@capstan/core/contracts/primitives';
import type { Db } from '../../src/db/connect.ts';
import { toOpaqueKey } from '../../src/use-cases/routing/call.ts';
import { answer, type Handler, type Instance } from './fleet.ts';

/** The capability of the steps. */
export const short = 'short';

/** All numbers in it, however deep. */
function sumOf(input: Json): number {
  if (typeof input === 'number') return input;
  if (typeof input !== 'object' || input === null) return 0;
  return Object.values(input).reduce<number>((sum, one) => sum + sumOf(one as Json), 0);
}

/** Answers the sum of its input and one, mostly after 2 to 8 ms. @param slowMs duration of every 40th call */
export function addUp(slowMs: number): Handler {
  let calls = 0;
  return (exec, response) => {
    calls += 1;
    const output = { v: sumOf(exec.input as Json) + 1 };
    const takesMs = calls % 40 === 0 ? slowMs : 2 + (calls % 7);
    setTimeout(() => answer(response, 200, { ok: true, output }), takesMs);
  };
}

export interface ShortRun {
  readonly job: { readonly n: number; readonly items: readonly number[] };
  readonly steps: readonly object[];
  readonly output: Json;
}

/** The retries are ample, so that lost connections fail no step. */
const settings = { capability: short, retry: { max: 50, initial: '50ms' }, escalate: { enabled: false } };
const eight = [0, 1, 2, 3, 4, 5, 6, 7];
const items = Array.from({ length: 50 }, (_, at) => at);

function inSequence(dispatch: string) {
  return eight.map((at) => ({
    ...settings,
    id: `s${at}`,
    dispatch,
    input: { v: at === 0 ? '{{ job.n }}' : `{{ steps.s${at - 1}.output.v }}` },
  }));
}

function sideBySide(dispatch: string) {
  const side = eight.map((at) => ({
    ...settings,
    id: `s${at}`,
    dispatch,
    input: { n: '{{ job.n }}', v: at },
  }));
  const v = eight.map((at) => `{{ steps.s${at}.output.v }}`);
  return [...side, { ...settings, id: 'join', dispatch, input: { v } }];
}

function byItem(dispatch: string) {
  const each = { ...settings, id: 'each', dispatch, for_each: { items: '{{ job.items }}' } };
  const join = {
    ...settings,
    id: 'join',
    dispatch,
    input: { n: '{{ job.n }}', v: '{{ steps.each.output }}' },
  };
  return [{ ...each, input: { v: '{{ item }}' } }, join];
}

/** A queued step between inline ones. */
function mixed(dispatch: string) {
  return inSequence(dispatch).map((step) => (step.id === 's4' ? { ...step, dispatch: 'queued' } : step));
}

/** @param n of the run: kinds and shapes take turns */
export function shortRun(n: number): ShortRun {
  const dispatch = n % 3 === 0 ? 'inline' : 'auto';
  const job = { n, items };
  switch (n % 4) {
    case 0:
      return { job, steps: inSequence(dispatch), output: { s7: { v: n + 8 } } };
    case 1:
      return { job, steps: sideBySide(dispatch), output: { join: { v: 8 * n + sumOf(eight) + 8 + 1 } } };
    case 2:
      return { job, steps: byItem(dispatch), output: { join: { v: n + sumOf(items) + 50 + 1 } } };
    default:
      return { job, steps: mixed(dispatch), output: { s7: { v: n + 8 } } };
  }
}

interface Tally {
  readonly key: string;
  readonly made: number;
  readonly lost: number;
}

/** Keys that an instance has executed more often than lost attempts explain, or without an attempt. */
export async function findRepeats(db: Db, { endpoint, execs }: Instance): Promise<string[]> {
  const executed = new Map<string, number>();
  for (const { headers } of execs) {
    const key = String(headers['idempotency-key']);
    executed.set(key, (executed.get(key) ?? 0) + 1);
  }
  const { rows } = await db.raw<{ rows: Tally[] }>(
    `select key, count(*) filter (where state in ('settled', 'lost'))::int as made,
       count(*) filter (where state = 'lost')::int as lost
     from attempt where endpoint = ? and key <> attempt_id group by key`, // such a key means that a claim was never made
    [endpoint],
  );
  return rows.flatMap(({ key, made, lost }) => {
    const times = executed.get(toOpaqueKey(key)) ?? 0;
    const isRight = lost === 0 ? times === 1 && made === 1 : times <= made;
    return isRight ? [] : [`${key} was executed ${times} times; ${made} attempts, ${lost} of them lost`];
  });
}

export async function countLost(db: Db): Promise<number> {
  const [row] = await db('attempt').where({ state: 'lost' }).count('* as lost');
  return Number(row?.lost);
}

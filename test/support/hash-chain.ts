/**
 * A pipeline of every kind of step whose capability returns a hash of its input, so that the output proves that every
 * step had exactly the expected input; the expected output is computed here, without the engine.
 */
import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { canonicalJson } from '@capstan/core/json/values';
import { answer, type Handler } from './fleet.ts';

export interface HashCall {
  /** Unchanged: the same for every attempt. */
  readonly key: string;
  /** Unix time in ms when it arrived. */
  readonly at: number;
}

export interface HashJob extends JsonObject {
  readonly seed: string;
  readonly isLeft: boolean;
  readonly items: { readonly name: string; readonly isBad: boolean }[];
}

/** The capability's answer. */
export function hashOf(input: Json): string {
  return createHash('sha256').update(canonicalJson(input)).digest('hex').slice(0, 16);
}

/** Answers after 20 to 150 ms; refuses bad items. @param calls receives every call as it arrives */
export function answerHashes(calls: HashCall[]): Handler {
  return (exec, response) => {
    calls.push({ key: String(exec.headers['idempotency-key']), at: Date.now() });
    const input = exec.input as JsonObject;
    const h = hashOf(input);
    const isBad = input.refuse === true || (input.item as HashJob['items'][number] | undefined)?.isBad;
    const body = isBad === true ? { ok: false, error: 'bad' } : { ok: true, output: { h } };
    setTimeout(
      () => answer(response, isBad === true ? 422 : 200, body),
      20 + Number.parseInt(h.slice(0, 2), 16) / 2,
    );
  };
}

const capability = 'hash';
/** The retries are ample, so that lost connections fail no step. */
const defaults = {
  retry: { max: 50, initial: '50ms', max_delay: '1s' },
  escalate: { enabled: false },
  dispatch: process.env.DISPATCH ?? 'auto',
};

export const subPipeline = {
  pipeline: 'hash-sub',
  version: '1',
  defaults,
  steps: [
    { id: 'x', capability, input: { v: '{{ job.seed }}' } },
    { id: 'y', capability, input: { v: '{{ steps.x.output.h }}' } },
  ],
  output: { h: '{{ steps.y.output.h }}' },
};

export const hashPipeline = {
  pipeline: 'hash-chain',
  version: '1',
  defaults,
  steps: [
    { id: 'a', capability, input: { v: '{{ job.seed }}' } },
    { id: 'left', capability, when: 'job.isLeft', input: { side: 'left', v: '{{ steps.a.output.h }}' } },
    { id: 'right', capability, when: '!job.isLeft', input: { side: 'right', v: '{{ steps.a.output.h }}' } },
    { id: 'broken', capability, on_error: 'continue', input: { refuse: true, v: '{{ steps.a.output.h }}' } },
    {
      id: 'repair',
      capability,
      depends_on: ['broken'],
      run_if: 'any_failed',
      input: { v: '{{ steps.a.output.h }}', why: '{{ steps.broken.error.code }}' },
    },
    {
      id: 'each',
      capability,
      for_each: { items: '{{ job.items }}', max_parallel: 5, tolerate: 1 },
      input: { item: '{{ item }}', index: '{{ index }}', v: '{{ steps.a.output.h }}' },
    },
    { id: 'pause', depends_on: ['a'], wait: '700ms' },
    {
      id: 'sub',
      depends_on: ['pause'],
      pipeline: 'hash-sub@1',
      input: { seed: '{{ steps.repair.output.h }}' },
    },
    {
      id: 'join',
      capability,
      run_if: 'all_done',
      input: {
        each: '{{ steps.each.output }}',
        left: '{{ steps.left.output.h ?? "none" }}',
        right: '{{ steps.right.output.h ?? "none" }}',
        sub: '{{ steps.sub.output.h }}',
      },
    },
    { id: 'quick', capability, dispatch: 'inline', input: { v: '{{ steps.join.output.h }}' } },
  ],
  output: { result: '{{ steps.quick.output.h }}', each: '{{ steps.each.output }}' },
};

/** Maps a step to steps that end before it begins; it covers calls and their dependencies. */
export const hashOrder: Readonly<Record<string, readonly string[]>> = {
  left: ['a'],
  right: ['a'],
  broken: ['a'],
  repair: ['a', 'broken'],
  each: ['a'],
  join: ['each', 'left', 'right', 'sub', 'pause'],
  quick: ['join'],
  y: ['x'],
};

/** @param n of the run: every job has another seed, another bad item and the other branch */
export function hashJob(n: number): HashJob {
  return {
    seed: `seed ${n}`,
    isLeft: n % 2 === 0,
    items: Array.from({ length: 20 }, (_, at) => ({ name: `item ${at}`, isBad: at === n % 20 })),
  };
}

/** Successful calls: a, one branch, repair, x, y, join, quick and the good items. */
export function succeedingCalls({ items }: HashJob): number {
  return 7 + items.filter(({ isBad }) => !isBad).length;
}

export function hashOutput({ seed, isLeft, items }: HashJob): JsonObject {
  const a = hashOf({ v: seed });
  const side = hashOf({ side: isLeft ? 'left' : 'right', v: a });
  const repair = hashOf({ v: a, why: 'input_rejected' });
  const each = items.map((item, index) => (item.isBad ? null : { h: hashOf({ item, index, v: a }) }));
  const sub = hashOf({ v: hashOf({ v: repair }) });
  const join = hashOf({ each, left: isLeft ? side : 'none', right: isLeft ? 'none' : side, sub });
  return { result: hashOf({ v: join }), each };
}

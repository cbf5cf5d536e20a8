/** Pipelines whose every step answers a hash of what came before it, and what must come out, without the engine. */
import { hashOf } from '../../test/support/hash-chain.ts';

export interface DagStep {
  readonly id: string;
  /** Steps that end before it begins; all of them are listed before it. */
  readonly after: readonly string[];
}
/** The last step is the output. */
export type Dag = readonly DagStep[];

/** Six steps: one, two side by side, and three in sequence. */
export const sixSteps: Dag = [
  { id: 'a', after: [] },
  { id: 'b', after: ['a'] },
  { id: 'c', after: ['a'] },
  { id: 'd', after: ['b', 'c'] },
  { id: 'e', after: ['d'] },
  { id: 'f', after: ['e'] },
];

export function chainOf(steps: number): Dag {
  return Array.from({ length: steps }, (_, at) => ({ id: `s${at}`, after: at === 0 ? [] : [`s${at - 1}`] }));
}

/** One, many after it, and one after up to a thousand of those. */
export function fanOutOf(steps: number): Dag {
  const many = Array.from({ length: steps - 2 }, (_, at) => ({ id: `m${at}`, after: ['first'] }));
  const joined = many.slice(-1_000).map(({ id }) => id);
  return [{ id: 'first', after: [] }, ...many, { id: 'last', after: joined }];
}

/** Up to three earlier steps each, chosen by a fixed sequence. */
export function randomOf(steps: number): Dag {
  let seed = 20_261_123;
  const next = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % below;
  };
  return Array.from({ length: steps }, (_, at) => {
    const before = new Set(Array.from({ length: at === 0 ? 0 : next(4) }, () => `s${next(at)}`));
    return { id: `s${at}`, after: [...before] };
  });
}

/** A run that loses contact so often is unlucky; nothing here fails for it. */
const settings = {
  retry: { max: 50, initial: '50ms', max_delay: '2s' },
  escalate: { enabled: false },
};

/** The job of a run gives its number `n`. */
export function definitionOf(pipeline: string, dag: Dag, capability: string) {
  return {
    pipeline,
    version: '1',
    defaults: settings,
    steps: dag.map(({ id, after }) => ({
      id,
      capability,
      depends_on: after,
      input: { id, n: '{{ job.n }}', after: after.map((before) => `{{ steps.${before}.output.h }}`) },
    })),
    output: { h: `{{ steps.${dag.at(-1)?.id}.output.h }}` },
  };
}

/** What each step of the run with this number answers. */
export function modelOf(dag: Dag, n: number): ReadonlyMap<string, string> {
  const answers = new Map<string, string>();
  for (const { id, after } of dag) {
    answers.set(id, hashOf({ id, n, after: after.map((before) => answers.get(before) ?? '') }));
  }
  return answers;
}

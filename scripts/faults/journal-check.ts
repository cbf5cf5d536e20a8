/** The journal of a fleet: every step saw what it had to see, after what it had to wait for. */
import { type Dag, modelOf } from './dag.ts';
import type { Line } from './fleet.ts';
import type { Verdict } from './verdict.ts';

interface StepLines {
  begins: number;
  /** Where in the journal it first began, and where it was first answered. */
  readonly began: number;
  ended?: number;
  readonly outputs: Set<unknown>;
}

function nameOf(n: number, step: string): string {
  return `${n} ${step}`;
}

function gather(lines: readonly Line[]): ReadonlyMap<string, StepLines> {
  const steps = new Map<string, StepLines>();
  for (const [at, { kind, n, step, status, output }] of lines.entries()) {
    const name = nameOf(n, step);
    const known = steps.get(name) ?? { begins: 0, began: at, outputs: new Set() };
    steps.set(name, known);
    if (kind === 'begin') known.begins += 1;
    if (output !== undefined) known.outputs.add(output.h);
    if (status === 200) known.ended ??= at;
  }
  return steps;
}

/** @param numbers of the runs whose submissions were accepted */
export function checkJournal(lines: readonly Line[], dag: Dag, numbers: readonly number[]): Verdict {
  const steps = gather(lines);
  const breaches: string[] = [];
  for (const n of numbers) {
    const model = modelOf(dag, n);
    for (const { id, after } of dag) {
      const seen = steps.get(nameOf(n, id));
      if (seen === undefined) continue; // not carried out: its run was cancelled, or is wrong by its output
      const others = [...seen.outputs].filter((output) => output !== model.get(id));
      if (others.length > 0) breaches.push(`step ${id} of run ${n} worked out ${others.join(', ')}`);
      const early = after.filter((before) => (steps.get(nameOf(n, before))?.ended ?? Infinity) > seen.began);
      if (early.length > 0) breaches.push(`step ${id} of run ${n} began before ${early.join(', ')} ended`);
    }
  }
  const begins = [...steps.values()].map((step) => step.begins);
  return {
    figures: {
      calls: begins.reduce((sum, count) => sum + count, 0),
      'steps called twice': begins.filter((count) => count > 1).length,
    },
    breaches,
  };
}

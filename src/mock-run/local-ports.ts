/** The ports of a local run: everything they do stays in memory. */
import type { RunPorts } from '../core/run/drive.ts';
import type { RunPlan } from '../core/run/plan.ts';
import { decideStep } from './decide-steps.ts';
import { guardPorts } from './guard-ports.ts';
import type { LocalContext } from './local-context.ts';
import type { RunWaits } from './run-waits.ts';
import { createUnitPorts } from './unit-ports.ts';

/** What belongs to whoever drives the run. */
export type DriverPorts = Pick<RunPorts, 'historyPressure' | 'continueAsNew'>;

export function createLocalPorts(
  context: LocalContext,
  plan: RunPlan,
  waits: RunWaits,
  { onFault, ...driver }: DriverPorts & { readonly onFault: (error: unknown) => void },
): RunPorts {
  const { journal, stop, climbing } = context;
  return {
    ...driver,
    ...guardPorts(createUnitPorts(context), onFault),
    decide: async (steps) => steps.map(({ id }) => decideStep(context, id)),
    listen: ({ step, item }, wait) => waits.listen({ id: step.id, item }, wait),
    record: (changes) => {
      for (const { step, item, state, error } of changes) {
        const id = plan.steps[step]?.id ?? '';
        journal.move({ id, item }, state, error === undefined ? {} : { error });
      }
    },
    cancelRunning: () => {
      stop.abort('cancelled');
      climbing.abort('cancelled');
    },
    cancelEscalations: () => climbing.abort('cancelled'),
  };
}

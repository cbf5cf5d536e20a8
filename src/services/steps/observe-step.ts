/** What is done for a step is done in its span, which is told when the step has ended: not when it waits or comes again. */
import type { Failure } from '../../contracts/primitives.ts';
import { capabilityOf } from '../../core/definition/step-kind.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { StepUnit } from '../run-data/step-unit.ts';
import { createRunSpans } from '../telemetry/run-spans.ts';
import type { StepControl } from './call-for-step.ts';
import { endOf } from './step-end.ts';

/** What it looks at of how an execution ended. */
interface ObservedEnd {
  readonly kind: string;
  readonly error?: Pick<Failure, 'code'>;
}

interface StepRound {
  readonly control: StepControl;
  /** It was begun in a batch, which tells how it ended. */
  readonly again: boolean;
}

type Observe = <End extends ObservedEnd>(
  unit: StepUnit,
  round: StepRound,
  work: (seen: StepControl) => Promise<End>,
) => Promise<End>;

const goesOn: ReadonlySet<string> = new Set(['waiting', 'retry', 'escalated']);

export function createStepObserver(telemetry: Telemetry): Observe {
  const spans = createRunSpans(telemetry);
  return async ({ context, step, key }, { control, again }, work) => {
    let startMs = control.askedAtMs ?? Date.now();
    let isTold = false;
    const onStanding: StepControl['onStanding'] = (standing) => {
      startMs = Math.min(startMs, standing.started_at?.getTime() ?? startMs);
      isTold = again && endOf(standing) !== null;
    };
    const scope = spans.scopeOfStep(context, key);
    const end = await telemetry.tracing.within(scope, () => work({ ...control, onStanding }));
    if (isTold || goesOn.has(end.kind)) return end;
    const capability = step.kind === 'call' ? capabilityOf(step.definition) : null;
    const error = end.error?.code ?? null;
    spans.endStep(context, key, { kind: step.kind, capability, startMs, state: end.kind, error });
    return end;
  };
}

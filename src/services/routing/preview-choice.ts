/** The choice of an instance without a claim: what a call made now would be given. Nothing is written, nobody called. */
import type { Decision } from '../../contracts/decision.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import type { SchemaError } from '../../core/call/claim-search.ts';
import { choose } from '../../core/routing/choose.ts';
import { explainChoice } from '../../core/routing/explain.ts';
import type { Headroom } from '../../core/routing/headroom.ts';
import type {
  Choice,
  InstanceSnapshot,
  RouteConstraints,
  RouteRequest,
  RuledOut,
} from '../../core/routing/types.ts';
import { newId } from '../ids.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';

export interface Refusals {
  readonly ruledOut: ReadonlyMap<string, RuledOut>;
  /** What the specs say against the input, each spec once. */
  readonly errors: readonly SchemaError[];
}

export const noRefusals: Refusals = { ruledOut: new Map(), errors: [] };

/** Instances whose schema is known and refuses the input. */
export async function findRefusals(
  validator: Pick<SchemaValidator, 'validateInput'>,
  instances: readonly InstanceSnapshot[],
  input: JsonObject,
): Promise<Refusals> {
  const ruledOut = new Map<string, RuledOut>();
  const errors: SchemaError[] = [];
  const isAccepted = new Map<string, boolean>();
  for (const { instance_id, spec_digest } of [...instances]) {
    if (spec_digest === null) continue;
    let ok = isAccepted.get(spec_digest);
    if (ok === undefined) {
      const result = await validator.validateInput(spec_digest, input);
      if (!result.ok) errors.push(...result.errors);
      ok = result.ok;
      isAccepted.set(spec_digest, ok);
    }
    if (!ok) ruledOut.set(instance_id, 'input_invalid');
  }
  return { ruledOut, errors };
}

export interface ChoicePreview {
  readonly request: RouteRequest;
  readonly choice: Choice;
  readonly decision: Decision;
}

export function previewChoice(
  fleet: Pick<FleetPoller, 'of' | 'nowMs'>,
  route: RouteConstraints,
  { headroomUsd, hidesHeadroom, ruledOut }: Headroom & Pick<RouteRequest, 'ruledOut'>,
): ChoicePreview {
  const { instances, priorMs } = fleet.of(route.capability);
  const budget = { headroomUsd, hidesHeadroom };
  const request = Object.assign(
    { priorMs, nowMs: fleet.nowMs(), ruledOut, busy: new Set<string>() },
    route,
    budget,
  );
  const choice = choose(instances, request, Math.floor(Math.random() * 2 ** 31));
  const decision = explainChoice(newId('decision'), request, choice, choice.best?.isFull === false);
  return { request, choice, decision };
}

/** A step that is a run of another pipeline: started once, waited for, its output taken. */
import type { JsonObject } from '../contracts/primitives.ts';
import { resolveStepSettings } from '../core/definition/compile/step-settings.ts';
import type { UnitEnd } from '../core/run/drive.ts';
import { findDepthFault, toStartFailure, toSubRunFailure } from '../core/run/sub-run.ts';
import type { Executed } from './call-unit.ts';
import { type EndedRun, type LocalContext, type SubRun, stepOf } from './local-context.ts';
import { MockFault } from './mock-fault.ts';
import type { UnitName, UnitRecord } from './run-journal.ts';
import { keyOfUnit, type UnitResults } from './unit-results.ts';

export interface SubRunUnits {
  execute(unit: UnitRecord, job: JsonObject): Executed;
  /** Nobody waits for it any more. */
  cancel(unit: UnitName): void;
}

export function createSubRunUnits(context: LocalContext, results: UnitResults): SubRunUnits {
  const { world, depth } = context;
  const known = new Map<string, SubRun>();

  const start = ({ id, item }: UnitName, reference: string, job: JsonObject): SubRun => {
    const definition = world.findPipeline(reference);
    if (definition === undefined) {
      throw new MockFault(`there is no pipeline ${reference}; name its file in pipelines`);
    }
    const step = stepOf(context, id).definition;
    const settings = resolveStepSettings(context.definition, step);
    const sub = world.startSubRun({
      definition,
      job,
      depth: depth + 1,
      priority: settings.priority ?? context.priority,
      ceilingUsd: step.budget_ceiling_usd ?? null,
      above: context.budget,
      onEnd: () => context.wake({ id, item }),
    });
    known.set(keyOfUnit({ id, item }), sub);
    return sub;
  };

  const take = (unit: UnitRecord, reference: string, run_id: string, ended: EndedRun): UnitEnd => {
    const { outcome, error, output = null } = ended;
    if (outcome === 'succeeded') return results.succeed(unit, output);
    const failure =
      outcome === 'refused' && error !== null
        ? toStartFailure(reference, error)
        : toSubRunFailure({ run_id, pipeline: reference, state: outcome, error });
    return results.end(unit, { state: 'failed', error: failure });
  };

  return {
    execute: (unit, job) => {
      const reference = stepOf(context, unit.id).definition.pipeline ?? '';
      const tooDeep = findDepthFault(depth + 1);
      if (tooDeep !== null) {
        return results.end(unit, { state: 'failed', error: toStartFailure(reference, tooDeep) });
      }
      const sub = known.get(keyOfUnit(unit)) ?? start(unit, reference, job);
      const ended = sub.end();
      unit.costNano = sub.spentNano();
      return ended === null
        ? results.wait(unit, { awaiting: 'run', until: null, ref: sub.runId })
        : take(unit, reference, sub.runId, ended);
    },
    cancel: (unit) => known.get(keyOfUnit(unit))?.cancel(),
  };
}

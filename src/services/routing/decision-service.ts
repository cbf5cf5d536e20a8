/** Decisions to look at: what would be chosen now, and what was chosen and why, made again from what was known. */
import type { Decision, DecisionDetail, RouteRequestBody } from '../../contracts/decision.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { choose } from '../../core/routing/choose.ts';
import { explainChoice } from '../../core/routing/explain.ts';
import { replayChoice } from '../../core/routing/replay.ts';
import type { InstanceSnapshot, RouteRequest, RuledOut } from '../../core/routing/types.ts';
import { readHeadroom } from '../../db/budget-headroom.ts';
import { type DecisionRow, findDecision } from '../../db/decision.ts';
import { AppError } from '../../errors.ts';
import { attemptIdOf, decisionIdOf, newId } from '../ids.ts';
import type { InstanceFeed } from '../registry/instance-feed.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import { type CapabilityLookup, requireCapability } from './require-capability.ts';

export interface DecisionService {
  /** What a call made now would be given; claims and writes nothing. @throws AppError `not_found` */
  preview(projectId: string, request: RouteRequestBody): Promise<Decision>;
  /** @throws AppError `not_found` */
  get(projectId: string, decisionId: string): Promise<DecisionDetail>;
}

export interface DecisionDependencies extends CapabilityLookup {
  readonly feed: Pick<InstanceFeed, 'fleet' | 'nowMs'>;
  readonly validator: Pick<SchemaValidator, 'validateInput'>;
}

export const createDecisionService = (dependencies: DecisionDependencies): DecisionService => {
  const { db, feed, validator } = dependencies;
  return {
    preview: async (projectId, { capability, input, ...wish }) => {
      await requireCapability(dependencies, capability, '/capability');
      const headroom = await readHeadroom(db, projectId);
      const { instances, priorMs } = feed.fleet(capability);
      const request: RouteRequest = {
        ...{ capability, tags: wish.tags, priority: wish.priority, timeoutMs: wish.timeout_ms, priorMs },
        versionRange: wish.version ?? null,
        ceilingUsd: wish.budget_ceiling_usd ?? null,
        headroomUsd: headroom === null ? null : Math.max(0, fromNanoUsd(headroom)),
        nowMs: feed.nowMs(),
        ruledOut: input === undefined ? new Map() : await findRefusals(validator, instances, input),
        busy: new Set(),
      };
      const choice = choose(instances, request, Math.floor(Math.random() * 2 ** 31));
      return explainChoice(newId('decision'), request, choice, choice.best?.isFull === false);
    },

    get: async (projectId, decisionId) => {
      const row = await findDecision(db, projectId, attemptIdOf(decisionId));
      if (row === undefined) throw new AppError('not_found', `there is no decision ${decisionId}`);
      return toDetail(row);
    },
  };
};

/** Instances whose schema is known and refuses the input. */
const findRefusals = async (
  validator: DecisionDependencies['validator'],
  instances: readonly InstanceSnapshot[],
  input: JsonObject,
): Promise<ReadonlyMap<string, RuledOut>> => {
  const refused = new Map<string, RuledOut>();
  const isAccepted = new Map<string, boolean>();
  for (const { instance_id, name, version, spec_digest } of [...instances]) {
    if (spec_digest === null) continue;
    const known = isAccepted.get(spec_digest);
    const ok = known ?? (await validator.validateInput(name, version, spec_digest, input)).ok;
    isAccepted.set(spec_digest, ok);
    if (!ok) refused.set(instance_id, 'input_invalid');
  }
  return refused;
};

const toDetail = ({ attempt_id, decision, inputs, settled_nano, ...row }: DecisionRow): DecisionDetail => {
  const chosen = inputs === null ? null : replayChoice(inputs);
  return {
    ...decision,
    decision_id: decisionIdOf(attempt_id),
    settled_usd: settled_nano === null ? null : fromNanoUsd(BigInt(settled_nano)),
    at: row.started_at.toISOString(),
    capability: row.capability,
    attempt_id,
    run_id: row.run_id,
    step_id: row.step_id,
    inputs: inputs ?? {},
    replay: { chosen, same: chosen !== null && chosen === decision.chosen },
  };
};

/** A planner on a database of the test, whose instances are rows: they could not be called. */

import type { Decision, RouteRequestBody } from '@capstan/core/contracts/decision';
import type { PipelineDefinition, StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Plan, PlanDefinitionRequest, PlannedStepView } from '@capstan/core/contracts/plan';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { createFileMediaStore } from '@capstan/media-store/file-store';
import { pino } from 'pino';
import { beforeAll } from 'vitest';
import type { Db } from '../../../src/db/connect.ts';
import { insertSpec } from '../../../src/db/instance/capability-spec.ts';
import type { InstanceColumns } from '../../../src/db/instance/instance.ts';
import { insertVersion } from '../../../src/db/pipeline.ts';
import { createKnownDefinitions } from '../../../src/parts/definitions/known-definitions.ts';
import { createFleetPoller } from '../../../src/parts/fleet/fleet-poller.ts';
import { createSchemaValidator } from '../../../src/parts/fleet/specs.ts';
import { createMediaLibrary } from '../../../src/parts/media/media-library.ts';
import { createOwnMedia } from '../../../src/parts/media/own-media.ts';
import { storeDefinition } from '../../../src/use-cases/pipelines/pipelines.ts';
import { planDefinition } from '../../../src/use-cases/plans/plan.ts';
import { previewDecision } from '../../../src/use-cases/routing/decisions.ts';
import { anInstance, aProject } from '../../support/factories.ts';
import { aCheckCtx } from '../../support/intake.ts';

type Over = Parameters<typeof anInstance>[1] & {
  readonly duration_ms?: number;
  readonly spec_digest?: string;
};

export interface Planner {
  readonly projectId: string;
  preview(request: RouteRequestBody): Promise<Decision>;
  /** An instance that has been called before; the planner sees it when this resolves. */
  add(name: string, over?: Over): Promise<InstanceColumns>;
  /** @returns digest of a spec that takes such inputs */
  addSpec(name: string, input: JsonObject): Promise<string>;
  /** Stores a version of a pipeline. */
  store(
    pipeline: string,
    steps: readonly StepDefinition[],
    over?: Partial<PipelineDefinition>,
  ): Promise<void>;
  plan(
    steps: readonly StepDefinition[],
    over?: Partial<PlanDefinitionRequest['definition']> & Wish,
  ): Promise<Plan>;
}

type Wish = Omit<PlanDefinitionRequest, 'definition' | 'priority' | 'budget_ceiling_usd'> & {
  readonly ceiling?: number;
};

const output = { type: 'object' };

async function createPlanner(db: Db): Promise<Planner> {
  const { project_id: projectId } = await aProject(db, { daily_limit_nano: 20_000_000_000n });
  const fleet = createFleetPoller({ db, intervalMs: 3_600_000, logger: pino({ level: 'silent' }) });
  const validator = createSchemaValidator({ db });
  const checking = aCheckCtx(db, { fleet });
  const ctx = {
    ...checking,
    db,
    ownMedia: createOwnMedia(db),
    media: createMediaLibrary({
      db,
      store: createFileMediaStore('/nowhere/at/all'),
      bytesPerProject: 0,
    }),
    fleet,
    validator,
    definitions: createKnownDefinitions(checking),
  };
  return {
    projectId,
    preview: (request) => previewDecision({ db, fleet, validator }, projectId, request),
    add: async (name, over) => {
      const row = await anInstance(db, { name, duration_ms: 1_000, ...over } as Over);
      await fleet.refresh();
      return row;
    },
    addSpec: async (name, input) => {
      const digest = `${name}-${JSON.stringify(input)}`;
      const spec = { name, version: '1.0.0', description: name, input, output };
      await insertSpec(db, { name, version: '1.0.0', digest, spec: spec as never });
      return digest;
    },
    store: async (pipeline, steps, over) => {
      const definition = { pipeline, version: '1', steps: [...steps], ...over };
      const key = { project_id: projectId, pipeline, version: definition.version };
      await insertVersion(db, key, { digest: await storeDefinition(db, definition) });
    },
    plan: (steps, { job, job_id, ceiling, ...over } = {}) =>
      planDefinition(
        ctx,
        { project_id: projectId },
        {
          definition: { pipeline: 'test', version: '1', steps: [...steps], ...over },
          ...(job === undefined ? {} : { job }),
          ...(job_id === undefined ? {} : { job_id }),
          ...(ceiling === undefined ? {} : { budget_ceiling_usd: ceiling }),
        },
      ),
  };
}

export function usePlanner(db: Db): { readonly get: () => Planner } {
  let planner: Planner;
  beforeAll(async () => {
    planner = await createPlanner(db);
  });
  return { get: () => planner };
}

export function stepOf({ steps }: Plan, id: string): PlannedStepView {
  const step = steps.find((one) => one.id === id);
  if (step === undefined) throw new Error(`the plan has no step ${id}`);
  return step;
}

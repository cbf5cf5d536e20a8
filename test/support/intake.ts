/** The context that checks definitions and accepts runs, without a process: a database, and no instances. */

import type { Fleet } from '@capstan/core/call/claim-search';
import { createSchemaCompiler, findRefusal } from '@capstan/core/schemas/schema-compiler';
import type { SchemaVetter } from '@capstan/core/schemas/schema-vetter';
import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import type { Db } from '../../src/db/connect.ts';
import { type CheckCtx, createCheckedDefinitions } from '../../src/parts/definitions/definition-facts.ts';
import { createKnownDefinitions } from '../../src/parts/definitions/known-definitions.ts';
import type { FleetPoller } from '../../src/parts/fleet/fleet-poller.ts';
import { createSchemaValidator } from '../../src/parts/fleet/specs.ts';
import { createOwnMedia } from '../../src/parts/media/own-media.ts';
import type { IntakeCtx } from '../../src/use-cases/runs/preparation.ts';

/** Compiles schemas in the same thread. */
function compileHere(): Pick<SchemaVetter, 'vet'> {
  const compiler = createSchemaCompiler();
  return {
    vet: async (schema) => findRefusal(compiler, schema),
  };
}

/** The same instances of every name for every project. */
export function aFleet(fleet: Fleet): Pick<FleetPoller, 'seenBy'> {
  return { seenBy: () => ({ of: () => fleet, scopeOf: () => null, nowMs: () => 0 }) };
}

/** The database lists the registered capabilities, unless a fleet is given. */
export function aCheckCtx(db: Db, over: Partial<CheckCtx> = {}): CheckCtx {
  return {
    db,
    fleet: aFleet({ instances: [], priorMs: 0 }),
    vetter: compileHere(),
    checked: createCheckedDefinitions(),
    ...over,
  };
}

export function anIntakeCtx(
  db: Db,
  { mostOpen, ...over }: Partial<CheckCtx> & { readonly mostOpen: number },
): IntakeCtx {
  const ctx = aCheckCtx(db, over);
  return {
    ...ctx,
    config: { OPEN_RUNS_PER_PROJECT: mostOpen },
    definitions: createKnownDefinitions(ctx),
    validator: createSchemaValidator({ db }),
    ownMedia: createOwnMedia(db),
    telemetry: noTelemetry,
  };
}

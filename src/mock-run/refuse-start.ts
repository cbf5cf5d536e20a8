/** Why a local run does not start, as the API would have refused it. */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import { checkRunnable } from '../core/definition/checks/check-capabilities.ts';
import { createSchemaCompiler } from '../schemas/schema-compiler.ts';
import type { MockFleet } from './mock-fleet.ts';

export function refuseStart(definition: PipelineDefinition, job: Json, fleet: MockFleet): Failure | null {
  return checkJob(definition, job) ?? checkCapabilities(definition, fleet);
}

function checkJob({ job_schema }: PipelineDefinition, job: Json): Failure | null {
  if (job_schema === undefined) return null;
  const faults = createSchemaCompiler().compile(job_schema)(job);
  if (faults.length === 0) return null;
  const findings = faults.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return { code: 'job_invalid', message: `the job does not match job_schema: ${findings}` };
}

/** A call of what nobody offers, and that waits for nobody, stops the run from starting. */
function checkCapabilities(definition: PipelineDefinition, fleet: MockFleet): Failure | null {
  const called = new Set(definition.steps.flatMap(({ capability }) => capability ?? []));
  const present = new Set([...called].filter((name) => fleet.of(name).instances.length > 0));
  const [first, ...more] = checkRunnable(definition, present);
  if (first === undefined) return null;
  const count = more.length === 0 ? 'one error' : `${more.length + 1} errors`;
  return { code: 'definition_invalid', message: `the definition has ${count}: ${first.message}` };
}

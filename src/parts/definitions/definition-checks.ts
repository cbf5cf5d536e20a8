/**
 * Checks definitions that have no source text: inside requests, and again when a run starts. The definition itself
 * never changes and is checked once; its surroundings are checked every time, from memory where they are known.
 */
import { setImmediate } from 'node:timers/promises';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { checkRunnable } from '@capstan/core/definition/checks/check-availability';
import { checkInPieces } from '@capstan/core/definition/checks/check-definition';
import { listReadSteps } from '@capstan/core/definition/checks/check-lists';
import type { DefinitionFacts, DefinitionFinding } from '@capstan/core/definition/checks/finding';
import { analyseInPieces } from '@capstan/core/definition/compile';
import { vetOwnSchemas } from '@capstan/core/definitions/input-forms';
import { refuseFindings } from '@capstan/core/definitions/submission';
import { createTurns } from '@capstan/core/pacing';
import { finishInTurns } from '@capstan/core/pieces';
import { listFormerItemBytes } from '../../db/step/step.ts';
import { type CheckCtx, type CheckedDefinition, gatherFacts } from './definition-facts.ts';

/** Large definitions are checked one after the other, and others are served between their pieces. */
export const takeTurn = createTurns(setImmediate);

interface RunCheck {
  /** Warnings and notes. */
  readonly findings: readonly Finding[];
  /** Digests of the specs it was checked against, by capability: current ones, or the last known. */
  readonly specs: Readonly<Record<string, string>>;
}

/**
 * Checks only what cannot change: for definitions inside another document. Its schemas can be compiled afterwards.
 * @throws AppError `definition_invalid`
 */
export async function requireSound(
  { vetter }: Pick<CheckCtx, 'vetter'>,
  definition: PipelineDefinition,
  name?: string,
): Promise<void> {
  const schemaFaultOf = await vetOwnSchemas(vetter.vet, definition);
  const facts = { knownCapabilities: null, strict: false, schemaFaultOf };
  const checked = await finishInTurns(checkInPieces(definition, facts), takeTurn);
  const findings = checked.map(toFinding);
  if (findings.some(({ severity }) => severity === 'error')) throw refuseFindings(findings, name);
}

/**
 * The definitions that count as stored for a check or a plan. @throws AppError `definition_invalid` that names the
 * first invalid one
 */
export async function requireSoundBeside(
  ctx: Pick<CheckCtx, 'vetter'>,
  beside: readonly PipelineDefinition[],
): Promise<void> {
  for (const definition of beside) {
    const { pipeline, version } = definition;
    await requireSound(ctx, definition, `${pipeline}@${version}`);
  }
}

/**
 * Checks it against the current state; missing capabilities are warnings. The sizes of lists are judged by the job and
 * by earlier runs.
 */
export async function checkForPlan(
  ctx: CheckCtx,
  projectId: string,
  { job, ...subject }: CheckedDefinition & Pick<DefinitionFacts, 'job'>,
): Promise<readonly Finding[]> {
  const { definition } = subject;
  const facts = await (await gatherFacts(ctx, projectId, subject)).read();
  const analysed = await finishInTurns(analyseInPieces(definition), takeTurn);
  const read = listReadSteps(analysed.templates);
  const run = { project_id: projectId, pipeline: definition.pipeline };
  const former = read.length === 0 ? undefined : await listFormerItemBytes(ctx.db, run, read);
  const itemBytesOf = (stepId: string) => former?.get(stepId);
  const pieces = checkInPieces(definition, { ...facts, job, itemBytesOf }, analysed);
  return (await finishInTurns(pieces, takeTurn)).map(toFinding);
}

/** @throws AppError `definition_invalid` with all errors when it cannot run now */
export async function checkForRun(
  ctx: CheckCtx,
  projectId: string,
  { definition, digest }: { readonly definition: PipelineDefinition; readonly digest: string },
): Promise<RunCheck> {
  const present = await gatherFacts(ctx, projectId, { definition });
  const name = JSON.stringify([digest, present.key]);
  let findings = ctx.checked.findings.get(name);
  if (findings === undefined) {
    const facts = { ...(await present.read()), knownCapabilities: null };
    const checked = await finishInTurns(checkInPieces(definition, facts), takeTurn);
    findings = [...checked, ...checkRunnable(definition, present.knownCapabilities)].map(toFinding);
    ctx.checked.findings.set(name, findings, findings);
  }
  if (findings.some(({ severity }) => severity === 'error')) throw refuseFindings(findings);
  return { findings, specs: present.specs };
}

function toFinding({ severity, code, pointer, message, suggestion }: DefinitionFinding): Finding {
  return {
    severity,
    code,
    pointer,
    message,
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}

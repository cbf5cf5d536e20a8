/**
 * The ends of an execution of a step of any kind: an end that another attempt has written, the ends that the workflow
 * decided, and the failure of an input that names a missing file.
 */

import { findMediaPlaces } from '@capstan/core/cache';
import { parseMediaReference } from '@capstan/core/contracts/media';
import type { Failure, JsonObject } from '@capstan/core/contracts/primitives';
import type { StepExecution } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../context.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readRunEnd } from '../../db/run/run.ts';
import { endStep, readStep, type StoredStep } from '../../db/step/step.ts';
import { recordChanges, type StepChange } from '../../db/step/step-progress.ts';
import type { MediaLibrary } from '../../parts/media/media-library.ts';

const takenOver: Failure = { code: 'contact_lost', message: 'a later attempt has taken over' };

/** Reads the end of a step from its row; null while it is open. */
export function endOf({ state, output, error }: StoredStep): StepExecution | null {
  switch (state) {
    case 'succeeded':
    case 'reused':
      return { kind: 'succeeded', output, attempt: null };
    case 'failed':
    case 'unknown':
      return { kind: state, error: error ?? takenOver };
    case 'skipped':
    case 'cancelled':
      return { kind: state };
    default:
      return null;
  }
}

/** Reads the end of a step; while it is open, another attempt is in flight and the result is a retry. */
export async function readEnd(db: Db, key: StepKey): Promise<StepExecution> {
  const row = await readStep(db, key);
  // The item never began, and its run has ended: no end was written.
  if (row === undefined && (await readRunEnd(db, key.run_id)) !== undefined) return { kind: 'cancelled' };
  const end = row === undefined ? null : endOf(row);
  return end ?? { kind: 'retry', error: row?.error ?? takenOver, delayMs: 1_000 };
}

/** Ends a step that nothing else ends. If it had ended, the earlier end stays and is returned. */
export async function failStep(db: Db, key: StepKey, error: Failure): Promise<StepExecution> {
  const isEnded = await endStep(db, key, { state: 'failed', error });
  return isEnded ? { kind: 'failed', error } : readEnd(db, key);
}

export interface ProgressReport {
  readonly run_id: string;
  readonly changes: readonly StepChange[];
}

/** Writes ends of steps that the workflow decided and that no attempt, ladder or wait has written. */
export async function recordProgress(
  { db }: Pick<Ctx, 'db'>,
  { run_id, changes }: ProgressReport,
): Promise<void> {
  if (changes.length > 0) await recordChanges(db, run_id, changes);
}

// A ladder cannot help when the input names a missing file: no level may change a reference, so the refusal is final.
// The file is looked for only after a refusal, because a capability may also receive a path to write to, under a key of
// its own.

const looksAtOnce = 16;

/** @returns the failure of a step whose input names a missing file to read; null = none is missing */
export async function findMissingFile(
  media: Pick<MediaLibrary, 'exists'>,
  input: JsonObject,
  refusal: Failure,
): Promise<Failure | null> {
  const sources = Object.entries(findMediaPlaces(input)?.sources ?? {});
  for (let at = 0; at < sources.length; at += looksAtOnce) {
    const isThere = await Promise.all(
      sources.slice(at, at + looksAtOnce).map(async ([, reference]) => {
        const path = parseMediaReference(reference);
        return path === null || (await media.exists(path));
      }),
    );
    const missing = sources[at + isThere.indexOf(false)];
    if (isThere.includes(false) && missing !== undefined) return describeMissing(missing, refusal);
  }
  return null;
}

function describeMissing([pointer, reference]: readonly [string, string], refusal: Failure): Failure {
  const message = `${pointer}: there is no file ${reference}; was it uploaded?`;
  return {
    code: 'media_unknown',
    message: `${message} The call failed: ${refusal.message}`,
    details: { errors: [{ pointer, message }] },
  };
}

/** Parameters that several resources share: path parameters, and the `Idempotency-Key`. */

import { createHash } from 'node:crypto';
import type { ProjectKey } from '@capstan/core/call/caller';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import { HostName } from '@capstan/core/contracts/host';
import { MediaFile, MediaJobId } from '@capstan/core/contracts/media';
import {
  CapabilityName,
  Labels,
  PipelineName,
  StepId,
  VersionText,
} from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import { type Caller, type CallMarks, toCallingKey } from '../use-cases/access/caller.ts';
import type { Idempotency } from '../use-cases/idempotency.ts';
import type { AnswerHeaders } from './route.ts';

const Id = z.string().min(1).max(128);

export const IdempotencyKey = z
  .string()
  .regex(/^[!-~]{1,255}$/, { error: 'an Idempotency-Key has 1 to 255 visible ASCII characters' })
  .optional();

/** The `{id}` of a resource. */
export const IdPath = z.object({ id: Id });
export const StepPath = z.object({ id: Id, step: StepId });
export const CapabilityPath = z.object({ name: CapabilityName });
export const HostPath = z.object({ name: HostName });
export const PipelinePath = z.object({ name: PipelineName });
/** Capstan maintains `latest`. */
const SetAlias = PipelineName.refine((name) => name !== 'latest', {
  error: 'latest always is the version that was stored last; choose another name',
}).meta({ not: { const: 'latest' } });
export const AliasPath = z.object({ name: PipelineName, alias: SetAlias });
export const VersionPath = z.object({ name: PipelineName, version: VersionText });
export const MediaFilePath = z.object({ job_id: MediaJobId, file: MediaFile });

const mostLabels = 16;

/** `team=ads,env=prod` */
const LabelsHeader = z
  .string()
  .max(4_096)
  .transform((text) => Object.fromEntries(text.split(',').map(readLabel)))
  .pipe(Labels)
  .refine((labels) => Object.keys(labels).length <= mostLabels, { error: `at most ${mostLabels} labels` })
  .optional()
  .meta({ description: 'Labels of the call, for budgets and costs: `team=ads,env=prod`.' });

const UserHeader = z
  .string()
  .regex(/^[ -~]{1,256}$/, { error: 'a user has 1 to 256 ASCII characters' })
  .optional()
  .meta({
    description: 'Whose call it is, for budgets and costs of `user:ID`. Instances do not receive it.',
  });

/** The fields of a request about its calls, apart from the key. */
export const CallerHeaders = z.object({ 'x-capstan-labels': LabelsHeader, 'x-capstan-user': UserHeader });

type CallerHeaders = z.output<typeof CallerHeaders>;

export function marksOf({ 'x-capstan-labels': labels, 'x-capstan-user': user }: CallerHeaders): CallMarks {
  return { labels, user };
}

/** @param user in the body, which goes before the header */
export function callingKeyOf(caller: Caller, headers: CallerHeaders, user?: string | null): ProjectKey {
  const marks = marksOf(headers);
  return toCallingKey(caller, { labels: marks.labels, user: user || marks.user });
}

function readLabel(pair: string): [name: string, value: string] {
  const at = pair.indexOf('=');
  return at < 0 ? [pair.trim(), ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
}

// The `Idempotency-Key` of a request, and the mark of a repeated answer.

/** Errors of a request that starts a run. */
export const startErrors = [
  'definition_invalid',
  'job_invalid',
  'media_unknown',
  'concurrency_limit',
  'open_runs_limit',
  'idempotency_key_reuse',
  'idempotency_in_progress',
] as const satisfies readonly ErrorCode[];

export const KeyHeaders = z.object({
  'idempotency-key': IdempotencyKey.meta({
    description: 'A repeated request with this key gets the same answer and starts nothing new.',
  }),
});

export function readIdempotency(
  { 'idempotency-key': key }: z.output<typeof KeyHeaders>,
  bytes: Buffer,
): Idempotency | null {
  return key === undefined ? null : { key, bodySha256: createHash('sha256').update(bytes).digest() };
}

export function markReplayed(isReplayed: boolean): AnswerHeaders {
  return isReplayed ? { 'Idempotent-Replayed': 'true' } : {};
}

/** Path parameters that several resources share. */
import { z } from 'zod';
import { MediaFile, MediaJobId } from '../../contracts/media.ts';
import { CapabilityName, PipelineName, StepId, VersionText } from '../../contracts/primitives.ts';

const Id = z.string().min(1).max(128);

export const IdempotencyKey = z
  .string()
  .regex(/^[!-~]{1,255}$/, { error: 'an Idempotency-Key has 1 to 255 visible ASCII characters' })
  .optional();

export const RunPath = z.object({ id: Id });
export const StepPath = z.object({ id: Id, step: StepId });
export const JobPath = z.object({ id: Id });
export const ProjectPath = z.object({ id: Id });
export const KeyPath = z.object({ id: Id });
export const ReviewPath = z.object({ id: Id });
export const DecisionPath = z.object({ id: Id });
export const SchedulePath = z.object({ id: Id });
export const WebhookPath = z.object({ id: Id });
export const SkillPath = z.object({ id: Id });
export const CapabilityPath = z.object({ name: CapabilityName });
export const PipelinePath = z.object({ name: PipelineName });
/** `latest` is kept by Capstan. */
const SetAlias = PipelineName.refine((name) => name !== 'latest', {
  error: 'latest always is the version that was stored last; choose another name',
}).meta({ not: { const: 'latest' } });
export const AliasPath = z.object({ name: PipelineName, alias: SetAlias });
export const VersionPath = z.object({ name: PipelineName, version: VersionText });
export const MediaFilePath = z.object({ job_id: MediaJobId, file: MediaFile });

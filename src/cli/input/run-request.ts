/**
 * Builds the body of `POST /v1/runs` from a command line. The API validates a file first, so that its errors show line
 * and caret. With files to upload, the job is created first, because media are stored under a job's id. The author
 * writes `media://job/<name>`, and the server inserts the id.
 */

import { access, constants } from 'node:fs/promises';
import { findMediaPlaces } from '@capstan/core/cache';
import {
  explainMediaPath,
  formatMediaReference,
  JobCreated,
  parseMediaPath,
} from '@capstan/core/contracts/media';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { type Validation, Validation as ValidationAnswer } from '@capstan/core/contracts/pipeline-answers';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { type ApiAnswer, jsonBody, type RequestBody } from '../client/api-client.ts';
import { uploadMedia } from '../client/media-transfer.ts';
import type { Session } from '../client/session.ts';
import { ProblemError, UsageError } from '../errors.ts';
import { countFindings, renderFindings } from '../render/findings.ts';
import { isFileArgument, parseJsonInput, parseSource, readSource, type SourceFile } from './arguments.ts';
import { type BesidePipeline, findNamedBeside, storeMissing } from './beside.ts';

interface CheckedSource extends ApiAnswer<Validation> {
  /** Pipelines beside the file that it refers to. */
  readonly beside: readonly BesidePipeline[];
}

/** Empty when the file cannot be parsed: the API reports the error. */
async function readBesideOf(session: Session, target: string, source: SourceFile): Promise<BesidePipeline[]> {
  const value = await parseSource(source).catch(() => null);
  const steps = isObject(value) && Array.isArray(value.steps) ? value.steps.filter(isObject) : [];
  return findNamedBeside(session, target, { steps } as unknown as Pick<PipelineDefinition, 'steps'>);
}

/** Validates a file through the API, for `validate` and `run`. */
export async function validateSource(
  session: Session,
  {
    target,
    source,
    strict,
  }: { readonly target: string; readonly source: SourceFile; readonly strict: boolean },
): Promise<CheckedSource> {
  const { client } = session;
  const beside = await readBesideOf(session, target, source);
  const { text, type } = source;
  const pipelines = beside.map(({ definition }) => definition);
  const answer =
    pipelines.length === 0
      ? client.post(`/v1/pipelines/validate${strict ? '?strict=true' : ''}`, ValidationAnswer, source)
      : client.post('/v1/validate', ValidationAnswer, jsonBody({ text, type, strict, pipelines }));
  return { ...(await answer), beside };
}

/** Prints to stdout for `validate`; to stderr where the findings are not the result. */
export function showFindings(
  { print }: Session,
  { findings, source }: { readonly findings: Validation['findings']; readonly source: SourceFile },
  to: 'line' | 'remark',
): void {
  renderFindings(findings, source, print).forEach(print[to]);
}

interface RunArguments {
  /** A file, `-`, or the name of a stored pipeline. */
  readonly target: string;
  /** Path, `-` or inline JSON. */
  readonly job?: string;
  readonly files: Readonly<Record<string, string>>;
  readonly version?: string;
  readonly alias?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly priority?: string;
  readonly budgetUsd?: number;
  readonly idempotencyKey?: string;
}

type RequestFields = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is RequestFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws ProblemError `definition_invalid`, after showing the findings */
async function readDefinition(session: Session, target: string): Promise<PipelineChoice> {
  const source = await readSource(target, session.shell.stdin);
  const { value, beside } = await validateSource(session, { target, source, strict: false });
  if (!value.valid || !session.json) showFindings(session, { findings: value.findings, source }, 'remark');
  if (!value.valid) {
    const detail = `${source.name} has ${countFindings(value.findings)}`;
    throw new ProblemError({ status: 422, code: 'definition_invalid', detail, errors: [] });
  }
  return { fields: { definition: await parseSource(source) }, beside };
}

interface PipelineChoice {
  /** The fields that name or hold the pipeline. */
  readonly fields: RequestFields;
  /** Pipelines beside the file that it refers to. */
  readonly beside: readonly BesidePipeline[];
}

/** Reads a file, or refers to a stored pipeline. @throws UsageError, ProblemError */
export async function readPipeline(
  session: Session,
  { target, version, alias }: Pick<RunArguments, 'target' | 'version' | 'alias'>,
): Promise<PipelineChoice> {
  if (!(await isFileArgument(target))) return { fields: { pipeline: target, version, alias }, beside: [] };
  const option = version !== undefined ? '--version' : alias !== undefined ? '--alias' : undefined;
  if (option !== undefined) throw new UsageError(`${option} goes with a pipeline name; ${target} is a file`);
  return readDefinition(session, target);
}

/** @throws UsageError */
export async function readJob(
  { shell }: Pick<Session, 'shell'>,
  { job, target }: Pick<RunArguments, 'job' | 'target'>,
): Promise<RequestFields> {
  if (job === undefined) return {};
  if (job === '-' && target === '-')
    throw new UsageError('only one of FILE and --job can be read from stdin');
  const inline = job.trimStart().startsWith('{');
  const value = inline ? parseJsonInput('--job', job) : await parseSource(await readSource(job, shell.stdin));
  if (!isObject(value)) throw new UsageError('the job must be a JSON object');
  return value;
}

/** Returns the new job's id. */
async function createJobWithFiles(
  session: Session,
  job: RequestFields,
  files: RunArguments['files'],
): Promise<string> {
  const { value } = await session.client.post('/v1/jobs', JobCreated, jsonBody({ job }));
  for (const [name, path] of Object.entries(files)) {
    const to = parseMediaPath(`${value.job_id}/${name}`);
    if (to === null) throw new UsageError(`the server's job id ${value.job_id} does not fit a media path`);
    await uploadMedia(session, path, to);
    session.print.remark(`uploaded ${path} as ${formatMediaReference(to)}`);
  }
  return value.job_id;
}

/** Checks all files, by their names in the job, before anything is created. */
export async function checkFiles(files: RunArguments['files']): Promise<void> {
  for (const [name, path] of Object.entries(files)) {
    if (parseMediaPath(`job/${name}`) === null) {
      throw new UsageError(`"${name}" cannot name a media file: ${explainMediaPath(`job/${name}`)}`);
    }
    await access(path, constants.R_OK).catch((cause: unknown) => {
      throw new UsageError(`cannot read ${path}`, { cause });
    });
  }
}

const ownPrefix = 'media://job/';

/** A named file without an upload is either a mistake, or the place where a step will write. */
function remarkMissing({ print }: Session, job: RequestFields, files: RunArguments['files']): void {
  const named = Object.values(findMediaPlaces(job as JsonObject)?.sources ?? {});
  for (const reference of new Set(named)) {
    if (!reference.startsWith(ownPrefix) || Object.hasOwn(files, reference.slice(ownPrefix.length))) continue;
    print.remark(`note: the job names ${reference}, and no --file uploads it`);
  }
}

/**
 * Uploads the local files, then returns the request's body.
 *
 * @throws UsageError, ProblemError, UnreachableError
 */
export async function prepareRun(session: Session, given: RunArguments): Promise<RequestBody> {
  const { files, labels, priority, budgetUsd, idempotencyKey } = given;
  const withFiles = Object.keys(files).length > 0;
  if (withFiles && idempotencyKey !== undefined) {
    throw new UsageError('--idempotency-key does not go with --file: uploading makes a new job every time');
  }
  await checkFiles(files);
  const { fields, beside } = await readPipeline(session, given);
  const job = await readJob(session, given);
  remarkMissing(session, job, files);
  await storeMissing(session, beside);
  const work = withFiles ? { job_id: await createJobWithFiles(session, job, files) } : { job };
  const labelled = Object.keys(labels).length === 0 ? {} : { labels };
  const body = { ...fields, ...work, ...labelled, priority, budget_ceiling_usd: budgetUsd };
  return jsonBody(body, idempotencyKey);
}

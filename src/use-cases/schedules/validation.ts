/** Checks a schedule when it is written, so that a fault does not first show at a start at night. */

import { readCron } from '@capstan/core/calendar/cron';
import type { Json } from '@capstan/core/contracts/primitives';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import type { ScheduleRequest } from '@capstan/core/contracts/schedule';
import { parseDuration } from '@capstan/core/duration';
import { AppError, refuseRequest } from '@capstan/core/errors/app-error';
import { delimiters, rootNames } from '@capstan/core/expression/language';
import { extendPointer } from '@capstan/core/json/values';
import { createNameSuggester } from '@capstan/core/nearest-name';
import type { Ctx } from '../../context.ts';
import { isKnownTimezone } from '../../db/access/project.ts';
import type { Db } from '../../db/connect.ts';
import { listAliases, listPipelineNames, listVersionNames } from '../../db/pipeline.ts';
import { checkJob, choiceOf, type KnownDefinition } from '../../parts/definitions/known-definitions.ts';
import { ownNamespace } from '../../parts/media/own-media.ts';
import { isZoneOfPlace } from '../access/projects.ts';
import { requireOwnMedia } from '../runs/preparation.ts';

type ScheduleCtx = Pick<Ctx, 'db' | 'definitions' | 'ownMedia' | 'validator'>;

/** Temporal's minimum; without a window it would catch up on a year. */
const leastCatchUpMs = 10_000;
const mostCatchUpMs = 365 * 86_400_000;

function suggest(name: string, known: readonly string[]): Pick<ProblemItem, 'suggestion'> {
  const suggestion = createNameSuggester(known)(name);
  return suggestion === undefined ? {} : { suggestion };
}

function checkCron({ cron }: ScheduleRequest): ProblemItem[] {
  try {
    readCron(cron);
    return [];
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [{ pointer: '/cron', code: 'cron_invalid', message: error.message }];
  }
}

async function checkTimezone(db: Db, { timezone }: ScheduleRequest): Promise<ProblemItem[]> {
  if ((await isKnownTimezone(db, timezone)) && isZoneOfPlace(timezone)) return [];
  const message = `${JSON.stringify(timezone)} is no IANA time zone; one is Europe/Berlin`;
  const known = ['UTC', ...Intl.supportedValuesOf('timeZone')];
  return [{ pointer: '/timezone', code: 'timezone_unknown', message, ...suggest(timezone, known) }];
}

function checkCatchUp({ catch_up }: ScheduleRequest): ProblemItem[] {
  const ms = parseDuration(catch_up);
  if (ms >= leastCatchUpMs && ms <= mostCatchUpMs) return [];
  const message = `catch_up is ${catch_up}; allowed is 10s to 365d`;
  return [{ pointer: '/catch_up', code: 'catch_up_invalid', message }];
}

/** `{{` and a root of the pipelines' expressions, to the end of it. `{{ name }}` may be a prompt template. */
const ownExpression = new RegExp(
  `${delimiters.open}\\s*(?:${rootNames.join('|')})(?![\\w-])(?:(?!${delimiters.close}).)*(?:${delimiters.close})?`,
  's',
);
const shown = 80;

/** The job is no template, so an expression in it would reach the run as it is written. */
function checkNoExpression(value: Json, pointer: string): ProblemItem[] {
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, below]) =>
      checkNoExpression(below, extendPointer(pointer, key)),
    );
  const found = typeof value === 'string' ? ownExpression.exec(value)?.[0] : undefined;
  if (found === undefined) return [];
  const message = `the job of a schedule takes no expression, and this text holds ${found.slice(0, shown)}`;
  const suggestion =
    'write the expression in the pipeline, where run.scheduled_at and run.scheduled_date tell the runs apart';
  return [{ pointer, code: 'expression_unused', message, suggestion }];
}

/** The version of a stored pipeline that a schedule or a hook names. */
type NamedTarget = Pick<ScheduleRequest, 'pipeline' | 'version' | 'alias'>;

/** Finds the unknown one of the names. */
async function explainTarget(
  db: Db,
  projectId: string,
  { pipeline, version, alias }: NamedTarget,
): Promise<ProblemItem> {
  const versions = await listVersionNames(db, projectId, pipeline);
  if (versions.length === 0) {
    const names = await listPipelineNames(db, projectId);
    const message = `no pipeline ${pipeline}`;
    return { pointer: '/pipeline', code: 'pipeline_unknown', message, ...suggest(pipeline, names) };
  }
  if (version !== undefined) {
    const message = `no version ${version} of a pipeline ${pipeline}`;
    return { pointer: '/version', code: 'version_unknown', message, ...suggest(version, versions) };
  }
  const aliases = (await listAliases(db, { project_id: projectId, pipeline })).map((row) => row.alias);
  const message = `no alias ${alias} of a pipeline ${pipeline}`;
  return { pointer: '/alias', code: 'alias_unknown', message, ...suggest(alias ?? '', aliases) };
}

/** @returns the definition, or which name is unknown */
export async function findTarget(
  { db, definitions }: Pick<ScheduleCtx, 'db' | 'definitions'>,
  projectId: string,
  request: NamedTarget,
): Promise<KnownDefinition | ProblemItem> {
  try {
    return await definitions.find(projectId, request.pipeline, choiceOf(request));
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error;
    return explainTarget(db, projectId, request);
  }
}

/** @throws AppError `request_invalid` that names every fault, `job_invalid`, `media_unknown` */
export async function checkSchedule(
  ctx: ScheduleCtx,
  projectId: string,
  request: ScheduleRequest,
): Promise<void> {
  const target = await findTarget(ctx, projectId, request);
  const errors = [
    ...checkCron(request),
    ...(await checkTimezone(ctx.db, request)),
    ...checkCatchUp(request),
    ...checkNoExpression(request.job, '/job'),
    ...('pointer' in target ? [target] : []),
  ];
  if (errors.length > 0 || 'pointer' in target) throw refuseRequest(errors);
  await checkJob(ctx, target, request.job);
  const job = { job_id: ownNamespace, body: request.job };
  await requireOwnMedia(ctx, projectId, { known: target, job });
}

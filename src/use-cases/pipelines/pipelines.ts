/**
 * Stored pipelines. A version is immutable: an equal definition returns the stored one; a different one is a conflict
 * that names the differences.
 */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type {
  Alias,
  PipelineSubmitted,
  PipelineSummary,
  PipelineVersion,
  Validation,
} from '@capstan/core/contracts/pipeline-answers';
import type { Json } from '@capstan/core/contracts/primitives';
import { showGraph } from '@capstan/core/definition/compile';
import {
  type DefinitionReading,
  type DefinitionText,
  openDefinition,
} from '@capstan/core/definitions/read-definition';
import { detectFormat } from '@capstan/core/definitions/source/source-node';
import { describeDifferences, digestDefinition, refuseFindings } from '@capstan/core/definitions/submission';
import { AppError } from '@capstan/core/errors/app-error';
import { finishInTurns } from '@capstan/core/pieces';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  type AliasRow,
  deleteAlias,
  findLatestVersion,
  findVersion,
  insertDefinition,
  insertVersion,
  listAliases,
  listPipelines,
  listVersions,
  type SummaryRow,
  setAlias,
  type VersionKey,
  type VersionRow,
  type VersionSource,
} from '../../db/pipeline.ts';
import { requireSoundBeside, takeTurn } from '../../parts/definitions/definition-checks.ts';
import { type CheckCtx, gatherFacts } from '../../parts/definitions/definition-facts.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';

/** Stores a definition by its content; storing an equal one again changes nothing. @returns its digest */
export async function storeDefinition(db: Db, definition: PipelineDefinition): Promise<string> {
  const digest = digestDefinition(definition);
  await insertDefinition(db, { digest, body: definition });
  return digest;
}

function toVersion({ created_at, source, ...row }: VersionRow): PipelineVersion {
  return { ...row, ...(source === null ? {} : { source }), created_at: created_at.toISOString() };
}

function toSummary({ created_at, ...row }: SummaryRow): PipelineSummary {
  return { ...row, created_at: created_at.toISOString() };
}

export async function listPipelinesPage(
  { db }: Pick<CheckCtx, 'db'>,
  projectId: string,
  { limit, cursor }: PageRequest,
) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listPipelines(db, projectId, { after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.pipeline, item: toSummary });
}

/** The latest version. @throws AppError `not_found` */
export async function getPipeline(
  { db }: Pick<CheckCtx, 'db'>,
  projectId: string,
  pipeline: string,
): Promise<PipelineVersion> {
  const row = await findLatestVersion(db, { project_id: projectId, pipeline });
  if (row === null) throw new AppError('not_found', `no pipeline ${pipeline}`);
  return toVersion(row);
}

/** @throws AppError `not_found` */
export async function getPipelineVersion(
  { db }: Pick<CheckCtx, 'db'>,
  key: VersionKey,
): Promise<PipelineVersion> {
  const row = await findVersion(db, key);
  if (row === null)
    throw new AppError('not_found', `no version ${key.version} of a pipeline ${key.pipeline}`);
  return toVersion(row);
}

/** @throws AppError `not_found` when the pipeline has no version at all */
export async function listVersionsPage(
  { db }: Pick<CheckCtx, 'db'>,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
  { limit, cursor }: PageRequest,
) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listVersions(db, { project_id, pipeline }, { after, limit: limit + 1 });
  if (rows.length === 0 && after === null) throw new AppError('not_found', `no pipeline ${pipeline}`);
  return toPage(rows, limit, {
    key: (row) => row.version,
    item: ({ created_at, ...row }) => ({ ...row, created_at: created_at.toISOString() }),
  });
}

function toSource({ text, contentType }: DefinitionText): VersionSource {
  return { text, content_type: `application/${detectFormat(text, contentType)}` };
}

/** The conflict of different content under an existing version. */
function refuseChange(stored: VersionRow, definition: PipelineDefinition): AppError {
  const toJson = (value: PipelineDefinition) => value as unknown as Json;
  return new AppError(
    'version_conflict',
    `${stored.pipeline} ${stored.version} exists with different content; submit a new version`,
    { errors: describeDifferences(toJson(stored.definition), toJson(definition)) },
  );
}

interface TextToCheck {
  readonly source: DefinitionText;
  readonly strict: boolean;
  /** Definitions that count as stored. */
  readonly beside?: readonly PipelineDefinition[];
}

async function readText(
  ctx: CheckCtx,
  projectId: string,
  { source, strict, beside = [] }: TextToCheck,
): Promise<DefinitionReading> {
  const { definition, check } = openDefinition(source);
  const present = definition === null ? null : await gatherFacts(ctx, projectId, { definition, beside });
  const facts = present === null ? null : { ...(await present.read()), strict };
  return finishInTurns(check(facts), takeTurn);
}

/** @throws AppError `definition_invalid` when one of them is invalid */
export async function validatePipeline(
  ctx: CheckCtx,
  projectId: string,
  text: TextToCheck,
): Promise<Validation> {
  await requireSoundBeside(ctx, text.beside ?? []);
  const { definition, findings, analysis } = await readText(ctx, projectId, text);
  const graph = definition === null || analysis === null ? null : showGraph(definition, analysis);
  return { valid: definition !== null, findings, graph };
}

/** @throws AppError `definition_invalid` with all findings, `version_conflict` with the differences */
export async function submitPipeline(
  ctx: CheckCtx,
  projectId: string,
  source: DefinitionText,
): Promise<{ answer: PipelineSubmitted; created: boolean }> {
  const { db } = ctx;
  const { definition, findings } = await readText(ctx, projectId, { source, strict: false });
  if (definition === null) throw refuseFindings(findings);
  const { pipeline, version } = definition;
  const key: VersionKey = { project_id: projectId, pipeline, version };
  const digest = await storeDefinition(db, definition);
  const created = await insertVersion(db, key, { digest, source: toSource(source) });
  const stored = created ? null : await findVersion(db, key);
  if (stored !== null && stored.digest !== digest) throw refuseChange(stored, definition);
  const warnings = findings.filter(({ severity }) => severity === 'warning');
  return { answer: { pipeline, version, digest, warnings }, created };
}

/** Aliases of pipeline versions: `production` means 1.4 today and 1.5 tomorrow. */
function toAlias({ alias, version, updated_at }: AliasRow): Alias {
  return { alias, version, updated_at: updated_at.toISOString() };
}

/** Repeated, it changes nothing but the audit log. @throws AppError `not_found` */
export async function setPipelineAlias(
  { db }: Pick<CheckCtx, 'db'>,
  key: VersionKey,
  { alias, actor }: { readonly alias: string; readonly actor: string },
): Promise<Alias> {
  return db.transaction(async (trx) => {
    const row = await setAlias(trx, key, alias);
    const { project_id, pipeline, version } = key;
    if (row === undefined) throw new AppError('not_found', `no version ${version} of a pipeline ${pipeline}`);
    const subject = `${pipeline}@${alias}`;
    await insertAudit(trx, { project_id, actor, action: 'alias.set', subject, data: { version } });
    return toAlias(row);
  });
}

/** Runs that were started with it keep their version. @throws AppError `not_found` */
export async function deletePipelineAlias(
  { db }: Pick<CheckCtx, 'db'>,
  { project_id, pipeline }: Omit<VersionKey, 'version'>,
  { alias, actor }: { readonly alias: string; readonly actor: string },
): Promise<void> {
  await db.transaction(async (trx) => {
    const subject = `${pipeline}@${alias}`;
    if (!(await deleteAlias(trx, { project_id, pipeline }, alias)))
      throw new AppError('not_found', `no alias ${subject}`);
    await insertAudit(trx, { project_id, actor, action: 'alias.deleted', subject, data: {} });
  });
}

/** @throws AppError `not_found` */
export async function listPipelineAliases(
  { db }: Pick<CheckCtx, 'db'>,
  projectId: string,
  pipeline: string,
): Promise<{ items: Alias[] }> {
  const rows = await listAliases(db, { project_id: projectId, pipeline });
  if (rows.length === 0) throw new AppError('not_found', `no pipeline ${pipeline}`);
  return { items: rows.map(toAlias) };
}

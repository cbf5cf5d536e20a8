/**
 * Stored pipelines. A version is immutable: submitting it again with an equal definition answers what is stored,
 * with another one it is a conflict that names the differences.
 */
import type {
  Alias,
  PipelineDefinition,
  PipelineSubmitted,
  PipelineSummary,
  PipelineVersion,
  Validation,
} from '../../contracts/pipeline.ts';
import type { Json } from '../../contracts/primitives.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  type AliasRow,
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
import { showGraph } from '../../definitions/definition-graph.ts';
import {
  type DefinitionReading,
  type DefinitionText,
  openDefinition,
} from '../../definitions/read-definition.ts';
import { detectFormat } from '../../definitions/source/source-node.ts';
import { describeDifferences, digestDefinition, refuseFindings } from '../../definitions/submission.ts';
import { AppError } from '../../errors/app-error.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { type CheckTools, createDefinitionChecks } from './definition-checks.ts';

/** Stores a definition by its content; storing an equal one again changes nothing. @returns its digest */
export async function storeDefinition(db: Db, definition: PipelineDefinition): Promise<string> {
  const digest = digestDefinition(definition);
  await insertDefinition(db, { digest, body: definition });
  return digest;
}

function toVersion({ created_at, source, ...row }: VersionRow): PipelineVersion {
  return {
    ...row,
    ...(source === null ? {} : { source }),
    created_at: created_at.toISOString(),
  };
}

function toSummary({ created_at, ...row }: SummaryRow): PipelineSummary {
  return {
    ...row,
    created_at: created_at.toISOString(),
  };
}

/** What is stored, as users see it. */
function createPipelineListings(db: Db) {
  return {
    list: async (projectId: string, { limit, cursor }: PageRequest) => {
      const after = cursor === undefined ? null : decodeCursor(cursor);
      const rows = await listPipelines(db, projectId, { after, limit: limit + 1 });
      return toPage(rows, limit, { key: (row) => row.pipeline, item: toSummary });
    },

    /** The latest version. @throws AppError `not_found` */
    get: async (projectId: string, pipeline: string): Promise<PipelineVersion> => {
      const row = await findLatestVersion(db, { project_id: projectId, pipeline });
      if (row === null) throw new AppError('not_found', `no pipeline ${pipeline}`);
      return toVersion(row);
    },

    /** @throws AppError `not_found` */
    getVersion: async (projectId: string, pipeline: string, version: string): Promise<PipelineVersion> => {
      const row = await findVersion(db, { project_id: projectId, pipeline, version });
      if (row === null) throw new AppError('not_found', `no version ${version} of a pipeline ${pipeline}`);
      return toVersion(row);
    },

    /** @throws AppError `not_found` when the pipeline has no version at all */
    versions: async (projectId: string, pipeline: string, { limit, cursor }: PageRequest) => {
      const after = cursor === undefined ? null : decodeCursor(cursor);
      const rows = await listVersions(db, { project_id: projectId, pipeline }, { after, limit: limit + 1 });
      if (rows.length === 0 && after === null) throw new AppError('not_found', `no pipeline ${pipeline}`);
      return toPage(rows, limit, {
        key: (row) => row.version,
        item: ({ created_at, ...row }) => ({ ...row, created_at: created_at.toISOString() }),
      });
    },
  };
}

function toSource({ text, contentType }: DefinitionText): VersionSource {
  return { text, content_type: `application/${detectFormat(text, contentType)}` };
}

/** Another content under a version that exists. */
function refuseChange(stored: VersionRow, definition: PipelineDefinition): AppError {
  const toJson = (value: PipelineDefinition) => value as unknown as Json;
  return new AppError(
    'version_conflict',
    `${stored.pipeline} ${stored.version} exists with another content; submit it as a new version`,
    { errors: describeDifferences(toJson(stored.definition), toJson(definition)) },
  );
}

/** @throws AppError `definition_invalid` with all findings, `version_conflict` with the differences */
async function submitVersion(
  db: Db,
  projectId: string,
  { definition, findings, source }: DefinitionReading & { readonly source: VersionSource },
): Promise<{ answer: PipelineSubmitted; created: boolean }> {
  if (definition === null) throw refuseFindings(findings);
  const { pipeline, version } = definition;
  const key: VersionKey = { project_id: projectId, pipeline, version };
  const digest = await storeDefinition(db, definition);
  const created = await insertVersion(db, key, { digest, source });
  const stored = created ? null : await findVersion(db, key);
  if (stored !== null && stored.digest !== digest) throw refuseChange(stored, definition);
  const warnings = findings.filter(({ severity }) => severity === 'warning');
  return { answer: { pipeline, version, digest, warnings }, created };
}

/** @param tools without them the database tells what is registered */
export function createPipelineService(db: Db, tools: CheckTools = {}) {
  const checks = createDefinitionChecks(db, tools);

  const read = async (
    projectId: string,
    source: DefinitionText,
    strict: boolean,
  ): Promise<DefinitionReading> => {
    const { definition, finish } = openDefinition(source);
    const facts = definition === null ? null : await checks.readFacts(projectId, definition);
    return finish(facts === null ? null : { ...facts, strict });
  };

  return {
    ...createPipelineListings(db),

    validate: async (
      projectId: string,
      source: DefinitionText,
      { strict }: { strict: boolean },
    ): Promise<Validation> => {
      const { definition, findings, analysis } = await read(projectId, source, strict);
      const graph = definition === null || analysis === null ? null : showGraph(definition, analysis);
      return { valid: definition !== null, findings, graph };
    },

    check: checks.check,
    checkForRun: checks.checkForRun,
    requireSound: checks.requireSound,

    /** @throws AppError `definition_invalid` with all findings, `version_conflict` with the differences */
    submit: async (projectId: string, source: DefinitionText) =>
      submitVersion(db, projectId, { ...(await read(projectId, source, false)), source: toSource(source) }),
  };
}

export type PipelineService = ReturnType<typeof createPipelineService>;

/** Aliases of pipeline versions: `production` means 1.4 today and 1.5 tomorrow. */
function toAlias({ alias, version, updated_at }: AliasRow): Alias {
  return {
    alias,
    version,
    updated_at: updated_at.toISOString(),
  };
}

export function createAliasService(db: Db) {
  return {
    /** Repeated, it changes nothing but the audit log. @param actor the key @throws AppError `not_found` */
    set: async (key: VersionKey, alias: string, actor: string): Promise<Alias> => {
      return db.transaction(async (trx) => {
        const row = await setAlias(trx, key, alias);
        const { project_id, pipeline, version } = key;
        if (row === undefined)
          throw new AppError('not_found', `no version ${version} of a pipeline ${pipeline}`);
        const subject = `${pipeline}@${alias}`;
        await insertAudit(trx, { project_id, actor, action: 'alias.set', subject, data: { version } });
        return toAlias(row);
      });
    },

    /** @throws AppError `not_found` */
    list: async (projectId: string, pipeline: string): Promise<{ items: Alias[] }> => {
      const rows = await listAliases(db, { project_id: projectId, pipeline });
      if (rows.length === 0) throw new AppError('not_found', `no pipeline ${pipeline}`);
      return { items: rows.map(toAlias) };
    },
  };
}

export type AliasService = ReturnType<typeof createAliasService>;

/**
 * Stored pipelines. A version is immutable: submitting it again with an equal definition answers what is stored,
 * with another one it is a conflict that names the differences.
 */
import type {
  Finding,
  PipelineDefinition,
  PipelineSubmitted,
  PipelineSummary,
  PipelineVersion,
  Validation,
} from '../../contracts/pipeline.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { ProblemItem } from '../../contracts/problem.ts';
import { checkDefinition } from '../../core/pipeline/check-definition.ts';
import { readTemplates } from '../../core/pipeline/definition-templates.ts';
import { createStepGraph } from '../../core/pipeline/step-graph.ts';
import { listCapabilityNames } from '../../db/capability-names.ts';
import type { Db } from '../../db/connect.ts';
import {
  findLatestVersion,
  findVersion,
  insertVersion,
  listPipelines,
  listVersions,
  type SummaryRow,
  type VersionKey,
  type VersionRow,
} from '../../db/pipeline.ts';
import { AppError } from '../../errors.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import { describeDifferences } from './definition-difference.ts';
import { type DefinitionReading, type DefinitionText, readDefinition } from './read-definition.ts';
import { hasUnstorableText } from './storable-text.ts';
import { storeDefinition } from './store-definition.ts';

const toGraph = (definition: PipelineDefinition): NonNullable<Validation['graph']> => {
  const { predecessors } = createStepGraph(definition, readTemplates(definition));
  const ids = definition.steps.map(({ id }) => id);
  return {
    steps: definition.steps.map(({ id, capability }) => ({ id, capability })),
    edges: ids.flatMap((to, index) =>
      (predecessors[index] ?? []).map((before) => ({ from: ids[before] ?? '', to })),
    ),
  };
};

const toItem = ({ severity: _, ...item }: Finding): ProblemItem => item;

const refuseFindings = (findings: readonly Finding[]): AppError => {
  const errors = findings.filter(({ severity }) => severity === 'error');
  const count = errors.length === 1 ? 'one error' : `${errors.length} errors`;
  const first = errors[0] === undefined ? '' : `: ${errors[0].message}`;
  return new AppError('definition_invalid', `the definition has ${count}${first}`, {
    errors: errors.map(toItem),
  });
};

const toVersion = ({ created_at, ...row }: VersionRow): PipelineVersion => ({
  ...row,
  created_at: created_at.toISOString(),
});

const toSummary = ({ created_at, ...row }: SummaryRow): PipelineSummary => ({
  ...row,
  created_at: created_at.toISOString(),
});

const refuseUnstorable = (reading: DefinitionReading): DefinitionReading => {
  if (reading.definition === null || !hasUnstorableText(reading.definition)) return reading;
  const message = 'a text holds a NUL character or half of a surrogate pair';
  const finding: Finding = { severity: 'error', code: 'text_invalid', pointer: '', message };
  return { definition: null, findings: [...reading.findings, finding] };
};

export const createPipelineService = (db: Db) => {
  const read = async (source: DefinitionText, strict: boolean): Promise<DefinitionReading> =>
    refuseUnstorable(readDefinition(source, { knownCapabilities: await listCapabilityNames(db), strict }));

  /** Another content under a version that exists. */
  const refuseChange = (stored: VersionRow, definition: PipelineDefinition): AppError => {
    const toJson = (value: PipelineDefinition) => value as unknown as Json;
    return new AppError(
      'version_conflict',
      `${stored.pipeline} ${stored.version} exists with another content; submit it as a new version`,
      { errors: describeDifferences(toJson(stored.definition), toJson(definition)) },
    );
  };

  return {
    validate: async (source: DefinitionText, { strict }: { strict: boolean }): Promise<Validation> => {
      const { definition, findings } = await read(source, strict);
      const graph = definition === null ? null : toGraph(definition);
      return { valid: definition !== null, findings, graph };
    },

    /** @throws AppError `definition_invalid` with all findings, `version_conflict` with the differences */
    submit: async (
      projectId: string,
      source: DefinitionText,
    ): Promise<{ answer: PipelineSubmitted; created: boolean }> => {
      const { definition, findings } = await read(source, false);
      if (definition === null) throw refuseFindings(findings);
      const { pipeline, version } = definition;
      const key: VersionKey = { project_id: projectId, pipeline, version };
      const digest = await storeDefinition(db, definition);
      const created = await insertVersion(db, key, digest);
      const stored = created ? null : await findVersion(db, key);
      if (stored !== null && stored.digest !== digest) throw refuseChange(stored, definition);
      const warnings = findings.filter(({ severity }) => severity === 'warning');
      return { answer: { pipeline, version, digest, warnings }, created };
    },

    /** For definitions that come inside another document. @throws AppError `definition_invalid` */
    requireSound: (definition: PipelineDefinition): void => {
      const findings = checkDefinition(definition, { knownCapabilities: null, strict: false });
      if (findings.some(({ severity }) => severity === 'error')) throw refuseFindings(findings);
    },

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
};

export type PipelineService = ReturnType<typeof createPipelineService>;

/** The pipelines that a definition runs, and those that they run: one query for each level. */
import { deepestSubRun } from '../../contracts/bounds.ts';
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { PipelineForm } from '../../core/definition/checks/definition-facts.ts';
import { createReferenceJudge } from '../../core/definition/checks/pipeline-tree.ts';
import { createNameSuggester } from '../../core/nearest-name.ts';
import type { Db } from '../../db/connect.ts';
import { listPipelineNames, listVersionNames } from '../../db/pipeline/pipeline-names.ts';
import { findReferenced, type ReferencedRow } from '../../db/pipeline/pipeline-reference.ts';
import type { InputForms } from '../../definitions/input-forms.ts';

export interface PipelineForms {
  /** By reference. */
  readonly forms: ReadonlyMap<string, PipelineForm>;
  /** The digests of the pipelines found, in the order of their references: what the forms depend on. */
  readonly digests: readonly string[];
}

/** Different references of a definition and of all it leads to. */
const mostReferences = 1_000;

export async function findPipelineForms(
  { db, forms }: { readonly db: Db; readonly forms: InputForms },
  projectId: string,
  definition: PipelineDefinition,
): Promise<PipelineForms> {
  const own = [...new Set(definition.steps.flatMap(({ pipeline }) => pipeline ?? []))];
  if (own.length === 0) return { forms: new Map(), digests: [] };
  const rows = await followReferences(db, projectId, own);
  if (rows === null) return { forms: new Map(own.map((reference) => [reference, tooMany])), digests: [] };
  const { pipeline, version } = definition;
  const judge = createReferenceJudge({ pipeline, version, references: own }, (reference) =>
    rows.get(reference),
  );
  const found = new Map<string, PipelineForm>();
  for (const reference of own) {
    const row = rows.get(reference);
    const fault = judge(reference);
    if (fault === null && row !== undefined) found.set(reference, forms.ofPipeline(row));
    else if (fault !== null)
      found.set(reference, { ...fault, ...(row ? {} : await suggest(db, projectId, reference)) });
  }
  const digests = [...rows.values()].map(({ reference, digest }) => `${reference} ${digest}`).sort();
  return { forms: found, digests };
}

const tooMany: PipelineForm = {
  kind: 'refused',
  code: 'pipeline_limit',
  message: `the pipelines that it leads to are more than ${mostReferences}, the most allowed`,
};

/** Null when there are too many. What does not exist is left out. */
async function followReferences(
  db: Db,
  projectId: string,
  own: readonly string[],
): Promise<ReadonlyMap<string, ReferencedRow> | null> {
  const rows = new Map<string, ReferencedRow>();
  const asked = new Set<string>();
  let level = [...own];
  for (let depth = 0; depth <= deepestSubRun && level.length > 0; depth++) {
    for (const reference of level) asked.add(reference);
    if (asked.size > mostReferences) return null;
    const found = await findReferenced(db, projectId, level);
    for (const row of found) rows.set(row.reference, row);
    level = [...new Set(found.flatMap(({ references }) => references))].filter(
      (reference) => !asked.has(reference),
    );
  }
  return rows;
}

/** A pipeline, or a version of one, that is nearly what was written. */
async function suggest(
  db: Db,
  projectId: string,
  reference: string,
): Promise<{ readonly suggestion?: string | undefined }> {
  const [name = ''] = reference.split('@', 1);
  const names = await listPipelineNames(db, projectId);
  if (!names.includes(name)) return { suggestion: createNameSuggester(names)(name) };
  const versions = await listVersionNames(db, projectId, name);
  const near = createNameSuggester(versions.map((known) => `${name}@${known}`))(reference);
  return { suggestion: near ?? `versions of ${name} are ${versions.slice(0, 5).join(', ')}` };
}

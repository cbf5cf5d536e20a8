/** The stored pipelines that a definition starts, as a run without a server needs them. */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Alias, PipelineSummary, PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import { askPlainly } from './client.ts';
import type { VersionLine } from './pipelines.ts';

interface StoredItems<Item> {
  readonly items: readonly Item[];
}

const latest = 'latest';

/** `name@version` or `name@alias` of each step that starts a run, each once. */
export function referencesOf({ steps }: Pick<PipelineDefinition, 'steps'>): string[] {
  return [...new Set(steps.flatMap(({ pipeline }) => pipeline ?? []))];
}

/** Resolves it like the server: a version, otherwise an alias. */
async function findVersion(name: string, choice: string): Promise<string | null> {
  const [versions, aliases] = await Promise.all([
    askPlainly<StoredItems<VersionLine>>(`/v1/pipelines/${name}/versions?limit=200`),
    askPlainly<StoredItems<Alias>>(`/v1/pipelines/${name}/aliases`),
  ]);
  if (versions.items.some(({ version }) => version === choice)) return choice;
  return aliases.items.find(({ alias }) => alias === choice)?.version ?? null;
}

/** @returns the pipeline under the requested version, because nothing else resolves an alias */
async function readStored(name: string, choice: string): Promise<PipelineDefinition | null> {
  if (choice === latest) return (await askPlainly<PipelineVersion>(`/v1/pipelines/${name}`)).definition;
  const version = await findVersion(name, choice);
  if (version === null) return null;
  const path = `/v1/pipelines/${name}/versions/${encodeURIComponent(version)}`;
  const { definition } = await askPlainly<PipelineVersion>(path);
  return { ...definition, version: choice };
}

const mostPipelines = 50;

/** The stored ones, and those that they start; for one name the latest comes last, if it is requested. */
export async function readSubPipelines(references: readonly string[]): Promise<PipelineDefinition[]> {
  if (references.length === 0) return [];
  const stored = await askPlainly<StoredItems<PipelineSummary>>('/v1/pipelines?limit=200');
  const names = new Set(stored.items.map(({ pipeline }) => pipeline));
  const wanted = new Set(references);
  const found: PipelineDefinition[] = [];
  const newest: PipelineDefinition[] = [];
  // Iterating a set includes elements added meanwhile.
  for (const reference of wanted) {
    const at = reference.indexOf('@');
    const [name, choice] = [reference.slice(0, at), reference.slice(at + 1)];
    if (!names.has(name) || found.length + newest.length >= mostPipelines) continue;
    const definition = await readStored(name, choice);
    if (definition === null) continue;
    (choice === latest ? newest : found).push(definition);
    for (const inner of referencesOf(definition)) wanted.add(inner);
  }
  return [...found, ...newest];
}

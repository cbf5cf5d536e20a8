/**
 * Pipelines beside a file: valid definitions in its folder, by name and version, as steps refer to them. A run against
 * mocks uses them directly. `validate` and `plan` send the ones that the file refers to. `run` stores them first,
 * because a run starts stored pipelines; it never overwrites other content, and reports each.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { PipelineSubmitted, PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import { path } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { ProblemError } from '../errors.ts';
import { renderFindings, toFindings } from '../render/findings.ts';
import type { Shell } from '../shell.ts';
import { readSource, type SourceFile } from './arguments.ts';

export interface BesidePipeline {
  readonly source: SourceFile;
  readonly definition: PipelineDefinition;
}

const most = { files: 200, bytes: 1_048_576 } as const;

async function isSmallFile(file: string): Promise<boolean> {
  const found = await stat(file).catch(() => undefined);
  return found?.isFile() === true && found.size <= most.bytes;
}

/** Null when the file holds something else, or cannot be read. */
async function readBeside(file: string, { stdin }: Shell): Promise<BesidePipeline | null> {
  if (!(await isSmallFile(file))) return null;
  const { readSubPipeline } = await import('@capstan/core/mock-run/prepare-run');
  const source = await readSource(file, stdin).catch(() => null);
  const definition = source === null ? null : readSubPipeline(source);
  return source === null || definition === null ? null : { source, definition };
}

/** Sorted by file name. */
export async function findBeside(target: string, shell: Shell): Promise<BesidePipeline[]> {
  const folder = dirname(target);
  const all = target === '-' ? [] : await readdir(folder);
  const names = all.filter((name) => /\.(ya?ml|json)$/i.test(name) && name !== basename(target)).sort();
  const read = names.slice(0, most.files).map((name) => readBeside(join(folder, name), shell));
  return (await Promise.all(read)).filter((one) => one !== null);
}

async function isStored({ client }: Session, where: string): Promise<boolean> {
  try {
    await client.get(where, PipelineVersion);
    return true;
  } catch (thrown) {
    if (thrown instanceof ProblemError && thrown.problem.code === 'not_found') return false;
    throw thrown;
  }
}

/**
 * Adds each pipeline after its own sub-pipelines. `name@latest` refers to one only while no pipeline of that name is
 * stored.
 */
async function follow(
  session: Session,
  references: readonly string[],
  {
    all,
    found,
  }: { readonly all: readonly BesidePipeline[]; readonly found: Map<string, BesidePipeline | null> },
): Promise<void> {
  const { findPipeline, referencesOf } = await import('@capstan/core/definition/checks/check-availability');
  for (const reference of references) {
    if (found.has(reference)) continue;
    found.set(reference, null);
    const [name = ''] = reference.split('@', 1);
    const definition = findPipeline(
      all.map((one) => one.definition),
      reference,
    );
    const one = all.find((other) => other.definition === definition);
    if (one === undefined) continue;
    if (reference === `${name}@latest` && (await isStored(session, path`/v1/pipelines/${name}`))) continue;
    await follow(session, referencesOf(one.definition), { all, found });
    found.delete(reference); // re-inserted, because a map keeps the order of insertion
    found.set(reference, one);
  }
}

/** The pipelines that a definition runs, directly or indirectly, each after its own sub-pipelines. */
export async function findNamedBeside(
  session: Session,
  target: string,
  definition: Pick<PipelineDefinition, 'steps'>,
): Promise<BesidePipeline[]> {
  const { referencesOf } = await import('@capstan/core/definition/checks/check-availability');
  const references = referencesOf(definition);
  if (references.length === 0) return [];
  const found = new Map<string, BesidePipeline | null>();
  await follow(session, references, { all: await findBeside(target, session.shell), found });
  return [...new Set(found.values())].filter((one) => one !== null);
}

/** @throws ProblemError, after showing the findings */
export async function storePipeline(session: Session, source: SourceFile) {
  const { client, print } = session;
  try {
    return await client.post('/v1/pipelines', PipelineSubmitted, source);
  } catch (thrown) {
    if (!(thrown instanceof ProblemError && thrown.problem.code === 'definition_invalid')) throw thrown;
    renderFindings(toFindings(thrown.problem.errors), source, print).forEach(print.remark);
    throw new ProblemError({ ...thrown.problem, errors: [] });
  }
}

/** For a run of a file that was validated together with them: no stored version has other content. */
export async function storeMissing(session: Session, beside: readonly BesidePipeline[]): Promise<void> {
  for (const { source, definition } of beside) {
    const { pipeline, version } = definition;
    if (await isStored(session, path`/v1/pipelines/${pipeline}/versions/${version}`)) continue;
    await storePipeline(session, source);
    session.print.remark(`stored ${pipeline}@${version} from ${source.name}`);
  }
}

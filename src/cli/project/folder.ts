/**
 * A folder that declares a project: the definitions in `pipelines/`, and `project.yaml`. It is read and checked without
 * a server, and without the variables that it names.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readCron } from '@capstan/core/calendar/cron';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { ProjectFile } from '@capstan/core/contracts/project-file';
import {
  createReferenceJudge,
  findPipeline,
  type PipelineNode,
  referencesOf,
} from '@capstan/core/definition/checks/check-availability';
import type { DefinitionFacts } from '@capstan/core/definition/checks/finding';
import { createFindingPlacer, type UnplacedFinding } from '@capstan/core/definitions/findings';
import { createInputForms } from '@capstan/core/definitions/input-forms';
import { openDefinition } from '@capstan/core/definitions/read-definition';
import { readJson } from '@capstan/core/definitions/source/read-json';
import { readYaml } from '@capstan/core/definitions/source/read-yaml';
import type { SourceReading } from '@capstan/core/definitions/source/source-node';
import { readStrict } from '@capstan/core/definitions/strict-shape';
import { extendPointer } from '@capstan/core/json/values';
import { pipelineFormOf } from '@capstan/core/mock-run/prepare-run';
import { finish } from '@capstan/core/pieces';
import { UsageError } from '../errors.ts';
import { readSource, type SourceFile } from '../input/arguments.ts';
import type { Shell } from '../shell.ts';

export interface FolderPipeline {
  readonly source: SourceFile;
  readonly definition: PipelineDefinition;
}

/** What is found about one file. */
export interface FileFindings {
  readonly source: SourceFile;
  readonly findings: readonly Finding[];
}

export interface ProjectFolder {
  /** Each after those that its steps run. */
  readonly pipelines: readonly FolderPipeline[];
  readonly file: ProjectFile;
  /** Null: there is no `project.yaml`. */
  readonly source: SourceFile | null;
  /** The names of variables that it needs. */
  readonly variables: readonly string[];
}

export const projectFileName = 'project.yaml';
export const pipelineFolder = 'pipelines';

function readTree({ text, type }: SourceFile): SourceReading {
  return type === 'application/json' ? readJson(text) : readYaml(text);
}

/** Findings with their lines. */
export function placeIn(source: SourceFile, findings: readonly UnplacedFinding[]): FileFindings {
  return { source, findings: createFindingPlacer(source.text, readTree(source).root)(findings) };
}

export function hasErrors(found: readonly FileFindings[]): boolean {
  return found.some(({ findings }) => findings.some(({ severity }) => severity === 'error'));
}

// The folder `pipelines/`.

async function listFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`cannot read ${folder}: ${error.code}`, { cause: error });
  });
  return names.filter((name) => /\.(ya?ml|json)$/i.test(name)).toSorted();
}

/** Of one pipeline, the file with its plain name comes last: its version becomes the latest. */
function inOrderOfNames(pipelines: readonly FolderPipeline[]): FolderPipeline[] {
  const isPlain = ({ source, definition }: FolderPipeline): number =>
    Number(/([^/\\]*)\.\w+$/.exec(source.name)?.[1] === definition.pipeline);
  return pipelines.toSorted((a, b) => isPlain(a) - isPlain(b));
}

/** The version behind `name@version` or `name@alias`. */
export function findInFolder(
  reference: string,
  { pipelines, file }: Pick<ProjectFolder, 'pipelines' | 'file'>,
): FolderPipeline | undefined {
  const definitions = pipelines.map(({ definition }) => definition);
  const [name = '', alias = ''] = reference.split('@');
  const version = file.pipeline_aliases?.[name]?.[alias];
  const found =
    findPipeline(definitions, reference) ??
    (version === undefined ? undefined : findPipeline(definitions, `${name}@${version}`));
  return pipelines.find(({ definition }) => definition === found);
}

/** Each pipeline after those that it runs. */
function sortByUse(folder: Pick<ProjectFolder, 'pipelines' | 'file'>): FolderPipeline[] {
  const sorted = new Set<FolderPipeline>();
  const seen = new Set<FolderPipeline>();
  const visit = (one: FolderPipeline): void => {
    if (seen.has(one)) return;
    seen.add(one);
    for (const reference of referencesOf(one.definition)) {
      const used = findInFolder(reference, folder);
      if (used !== undefined) visit(used);
    }
    sorted.add(one);
  };
  for (const one of folder.pipelines) visit(one);
  return [...sorted];
}

/** What one pipeline can know about the others of the folder. */
function factsOf(
  folder: Pick<ProjectFolder, 'pipelines' | 'file'>,
  root: PipelineDefinition,
): DefinitionFacts {
  const forms = createInputForms();
  const nodeOf = (reference: string): PipelineNode | undefined => {
    const definition = findInFolder(reference, folder)?.definition;
    return definition && { ...definition, references: referencesOf(definition) };
  };
  const judge = createReferenceJudge({ ...root, references: referencesOf(root) }, nodeOf);
  return {
    knownCapabilities: null,
    strict: false,
    pipelineOf: (reference) => {
      const refused = judge(reference);
      // Others may be stored on the server.
      if (refused !== null) return refused.code === 'pipeline_unknown' ? undefined : refused;
      const found = findInFolder(reference, folder)?.definition;
      return found === undefined ? undefined : pipelineFormOf(forms, reference, found);
    },
  };
}

function refuseTwice(pipelines: readonly FolderPipeline[]): FileFindings[] {
  const seen = new Map<string, string>();
  return pipelines.flatMap(({ source, definition: { pipeline, version } }) => {
    const name = `${pipeline}@${version}`;
    const other = seen.get(name);
    seen.set(name, other ?? source.name);
    if (other === undefined) return [];
    const message = `${name} is also in ${other}; remove one of the files, or raise the version`;
    return [placeIn(source, [{ severity: 'error', code: 'value_invalid', pointer: '/version', message }])];
  });
}

/** Checks definitions together, or a single one. */
export function checkDefinitions(
  sources: readonly SourceFile[],
  file: ProjectFile,
): { readonly pipelines: readonly FolderPipeline[]; readonly found: readonly FileFindings[] } {
  const opened = sources.map((source) => ({
    source,
    ...openDefinition({ text: source.text, contentType: source.type }),
  }));
  const pipelines = inOrderOfNames(
    opened.flatMap(({ source, definition }) => (definition === null ? [] : [{ source, definition }])),
  );
  const found = opened.map(({ source, definition, check }) => {
    const facts = definition === null ? null : factsOf({ pipelines, file }, definition);
    return { source, findings: finish(check(facts)).findings };
  });
  return { pipelines, found: [...found, ...refuseTwice(pipelines)] };
}

// The file `project.yaml`.

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** @throws UsageError for variables that are not set */
export function createResolver(environment: NodeJS.ProcessEnv): (text: string) => string {
  return (text) =>
    text.replace(variable, (_, name: string) => {
      const value = environment[name];
      if (value !== undefined && value !== '') return value;
      throw new UsageError(`the variable ${name}, which ${projectFileName} names, is not set`);
    });
}

function namesIn(texts: readonly string[]): string[] {
  const names = texts.flatMap((text) => [...text.matchAll(variable)].map(([, name = '']) => name));
  return [...new Set(names)];
}

function variablesOf({ hooks = {}, webhooks = [] }: ProjectFile): string[] {
  return namesIn([
    ...Object.values(hooks).map(({ secret = '' }) => secret),
    ...webhooks.map(({ url }) => url),
  ]);
}

function faultAt(pointer: string, message: string): UnplacedFinding {
  return { severity: 'error', code: 'value_invalid', pointer, message };
}

function findCronFaults({ schedules = {} }: ProjectFile): UnplacedFinding[] {
  return Object.entries(schedules).flatMap(([name, { cron }]) => {
    try {
      readCron(cron);
      return [];
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      return [faultAt(extendPointer('/schedules', name, 'cron'), thrown.message)];
    }
  });
}

function findDoubleUrls({ webhooks = [] }: ProjectFile): UnplacedFinding[] {
  const first = new Set<string>();
  return webhooks.flatMap(({ url }, index) => {
    if (!first.has(url)) {
      first.add(url);
      return [];
    }
    return [faultAt(`/webhooks/${index}/url`, 'an earlier webhook has this url; name all its events there')];
  });
}

/** The text for messages: a secret that is written out by mistake is not repeated. Places stay the same. */
function hideSecrets(text: string): string {
  const written = /(\bsecret\w*["']?\s*:\s*)(?!["']?\$\{)([^\n]+)/gi;
  return text.replace(written, (_, key: string, value: string) => key + '*'.repeat(value.length));
}

function placeHidden(source: SourceFile, findings: readonly UnplacedFinding[]): FileFindings {
  return { ...placeIn(source, findings), source: { ...source, text: hideSecrets(source.text) } };
}

function checkProjectFile(source: SourceFile): { readonly file: ProjectFile; readonly found: FileFindings } {
  const { text } = source;
  const { root, problems } = readTree(source);
  const broken = problems.map((problem): UnplacedFinding => ({ severity: 'error', ...problem }));
  if (root === null || broken.length > 0) return { file: {}, found: placeHidden(source, broken) };
  // A file of comments alone declares nothing.
  const shape = readStrict(ProjectFile, root.value ?? {}, { root, text });
  if ('faults' in shape) return { file: {}, found: placeHidden(source, shape.faults) };
  const { data: file } = shape;
  return { file, found: placeHidden(source, [...findCronFaults(file), ...findDoubleUrls(file)]) };
}

/** @throws UsageError when it holds nothing that declares a project */
export async function readFolder(
  folder: string,
  { stdin }: Shell,
): Promise<{ readonly folder: ProjectFolder; readonly found: readonly FileFindings[] }> {
  const listed = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`cannot read the folder ${folder}: ${error.code}`, { cause: error });
  });
  const known = [projectFileName, pipelineFolder];
  if (!known.some((name) => listed.includes(name)))
    throw new UsageError(`${folder} has neither ${pipelineFolder}/ nor ${projectFileName}`);
  const source = listed.includes(projectFileName)
    ? await readSource(join(folder, projectFileName), stdin)
    : null;
  const checked = source === null ? { file: {}, found: null } : checkProjectFile(source);
  const { file } = checked;
  const names = await listFiles(join(folder, pipelineFolder));
  const texts = await Promise.all(names.map((name) => readSource(join(folder, pipelineFolder, name), stdin)));
  const { pipelines, found } = checkDefinitions(texts, file);
  return {
    folder: { pipelines: sortByUse({ pipelines, file }), file, source, variables: variablesOf(file) },
    found: checked.found === null ? found : [checked.found, ...found],
  };
}

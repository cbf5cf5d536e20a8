/**
 * `capstan pull`: the way from the server to a folder. It writes the latest version of each pipeline, and the
 * versions that aliases, schedules, hooks and other pipelines name. No answer of the server holds a secret.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { PipelineList, PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import type { Json } from '@capstan/core/contracts/primitives';
import type { ProjectFile } from '@capstan/core/contracts/project-file';
import { referencesOf } from '@capstan/core/definition/checks/check-availability';
import { writeYaml } from '@capstan/core/definitions/source/write-yaml';
import { digestDefinition } from '@capstan/core/definitions/submission';
import { type ApiClient, getAll, path } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { findChanges, type ServerObject } from './changes.ts';
import {
  createResolver,
  hasErrors,
  type ProjectFolder,
  pipelineFolder,
  projectFileName,
  readFolder,
} from './folder.ts';
import { kinds, type ObjectKind } from './kinds.ts';
import { unlessMissing } from './plan.ts';

interface PulledFile {
  /** Within the folder. */
  readonly name: string;
  readonly state: 'created' | 'changed' | 'unchanged';
}

interface WrittenFile {
  readonly name: string;
  readonly text: string;
}

// Pipelines.

/** Follows references to versions. @returns the versions by `name@version` */
async function collectVersions(
  client: ApiClient,
  wanted: readonly string[],
  aliases: ReadonlyMap<string, string>,
): Promise<Map<string, PipelineVersion>> {
  const found = new Map<string, PipelineVersion>();
  const open = [...wanted];
  for (let reference = open.pop(); reference !== undefined; reference = open.pop()) {
    const [name = ''] = reference.split('@', 1);
    const version = aliases.get(reference) ?? reference.slice(name.length + 1);
    if (version === 'latest' || found.has(`${name}@${version}`)) continue;
    const stored = await unlessMissing(
      client.get(path`/v1/pipelines/${name}/versions/${version}`, PipelineVersion),
    );
    if (stored === undefined) continue;
    found.set(`${name}@${version}`, stored.value);
    open.push(...referencesOf(stored.value.definition));
  }
  return found;
}

function textOf({ source, definition }: PipelineVersion): string {
  return source?.text ?? writeYaml(definition as unknown as Json);
}

function fileNameOf({ pipeline, version, source }: PipelineVersion, isLatest: boolean): string {
  const name = isLatest ? pipeline : `${pipeline}@${version.replaceAll(/[^A-Za-z0-9._+-]/g, '_')}`;
  return join(pipelineFolder, `${name}.${source?.content_type === 'application/json' ? 'json' : 'yaml'}`);
}

/** A version that lies in a file of the folder stays there, unless another version takes the place of that file. */
function writePipelines(
  versions: readonly PipelineVersion[],
  latest: ReadonlySet<string>,
  here: ReadonlyMap<string, string>,
): WrittenFile[] {
  const files = versions.map((one) => ({
    digest: one.digest,
    name: fileNameOf(one, latest.has(`${one.pipeline}@${one.version}`)),
    text: textOf(one),
  }));
  const isKept = (digest: string): boolean => {
    const name = here.get(digest);
    return name !== undefined && !files.some((other) => other.name === name && other.digest !== digest);
  };
  return files.filter(({ digest }) => !isKept(digest));
}

/** The files of the folder by the digest of their definition. */
function filesByDigest(folder: string, here: ProjectFolder | null): ReadonlyMap<string, string> {
  return new Map(
    (here?.pipelines ?? []).map(({ source, definition }) => [
      digestDefinition(definition),
      relative(folder, source.name),
    ]),
  );
}

// `project.yaml`.

function firstLine(url: string): string {
  return `# yaml-language-server: $schema=${url}/v1/schemas/project.json\n`;
}

/** An address with a variable is never written out. @throws UsageError for a variable that is not set */
function knownUrls({ webhooks = [] }: ProjectFile, environment: NodeJS.ProcessEnv): Map<string, string> {
  const resolve = createResolver(environment);
  const known = webhooks.map(({ url }): [string, string] => {
    const address = resolve(url);
    return [URL.canParse(address) ? new URL(address).href : address, url];
  });
  return new Map(known);
}

/** Puts the variables of the former file where their values are those of the server. */
function keepVariables(file: ProjectFile, former: ProjectFile, environment: NodeJS.ProcessEnv): ProjectFile {
  const { hooks, webhooks } = file;
  const urls = knownUrls(former, environment);
  const withSecrets = Object.entries(hooks ?? {}).map(([name, hook]) => {
    const secret = former.hooks?.[name]?.secret;
    return [name, secret === undefined ? hook : { ...hook, secret }];
  });
  return {
    ...file,
    ...(hooks === undefined ? {} : { hooks: Object.fromEntries(withSecrets) }),
    ...(webhooks === undefined
      ? {}
      : { webhooks: webhooks.map((one) => ({ ...one, url: urls.get(one.url) ?? one.url })) }),
  };
}

function isEmpty(section: Json): boolean {
  return typeof section === 'object' && section !== null && Object.keys(section).length === 0;
}

/** Whether the former file declares what the server has. */
function isDeclared(
  found: ReadonlyMap<ObjectKind, readonly ServerObject[]>,
  former: ProjectFile,
  environment: NodeJS.ProcessEnv,
): boolean {
  const resolve = createResolver(environment);
  return [...found].every(([kind, objects]) => {
    // No answer holds the secret of a hook, so that it is not compared.
    const wanted = kind.wanted(former, kind.section === 'hooks' ? (text) => text : resolve);
    if (wanted === null) return isEmpty(kind.write(objects));
    const changes = findChanges(wanted, objects, { switches: kind.switches, prune: true });
    return changes.every(({ action }) => action === 'unchanged');
  });
}

/** @returns null when the former file declares the same: its comments stay */
function writeProject(
  found: ReadonlyMap<ObjectKind, readonly ServerObject[]>,
  former: ProjectFile | null,
  { client, shell: { environment } }: Session,
): WrittenFile | null {
  if (former !== null && isDeclared(found, former, environment)) return null;
  const sections = [...found].flatMap(([kind, objects]): [string, Json][] => {
    const section = kind.write(objects.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
    return isEmpty(section) && former?.[kind.section] === undefined ? [] : [[kind.section, section]];
  });
  const written = Object.fromEntries(sections) as unknown as ProjectFile;
  const file = keepVariables(written, former ?? {}, environment) as unknown as Json;
  const text = sections.length === 0 ? '' : writeYaml(file);
  return { name: projectFileName, text: firstLine(client.connection.url) + text };
}

// Files.

/** Null for a folder that declares nothing yet. @throws UsageError for one with errors */
async function readHere(folder: string, { shell }: Session): Promise<ProjectFolder | null> {
  const read = await readFolder(folder, shell).catch((thrown) => {
    if (thrown instanceof UsageError) return null;
    throw thrown;
  });
  if (read === null) return null;
  const broken = read.found.find((one) => hasErrors([one]));
  if (broken !== undefined)
    throw new UsageError(`${broken.source.name} has errors; see \`capstan validate ${folder}\``);
  return read.folder;
}

async function write(folder: string, { name, text }: WrittenFile, isDry: boolean): Promise<PulledFile> {
  const file = join(folder, name);
  const former = await readFile(file, 'utf8').catch(() => undefined);
  if (former === text) return { name, state: 'unchanged' };
  if (!isDry) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  return { name, state: former === undefined ? 'created' : 'changed' };
}

function referencesOfObjects(found: ReadonlyMap<ObjectKind, readonly ServerObject[]>): string[] {
  return [...found].flatMap(([, objects]) =>
    objects.flatMap(({ value: { pipeline, version } }) =>
      pipeline === undefined || version === undefined ? [] : [`${pipeline}@${version}`],
    ),
  );
}

/** @returns the files, in their order */
export async function pullProject(session: Session, folder: string, isDry: boolean): Promise<PulledFile[]> {
  const { client } = session;
  const here = await readHere(folder, session);
  const found = new Map<ObjectKind, readonly ServerObject[]>();
  for (const kind of kinds) found.set(kind, await kind.find(client));
  const aliasObjects = [...found].find(([{ section }]) => section === 'pipeline_aliases')?.[1] ?? [];
  const aliases = new Map(aliasObjects.map(({ name, value }) => [name, String(value.version)]));
  const listed = (await getAll(client, '/v1/pipelines', PipelineList)).value.items;
  const latest = listed.map(({ pipeline, latest_version }) => `${pipeline}@${latest_version}`);
  const versions = await collectVersions(
    client,
    [...latest, ...aliases.keys(), ...referencesOfObjects(found)],
    aliases,
  );
  const project = writeProject(found, here === null || here.source === null ? null : here.file, session);
  const files = [
    ...writePipelines([...versions.values()], new Set(latest), filesByDigest(folder, here)),
    ...(project === null ? [] : [project]),
  ];
  const pulled: PulledFile[] = [];
  for (const file of files.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
    pulled.push(await write(folder, file, isDry));
  return pulled;
}

/**
 * The changes that bring a project to its files, in an order that works: pipelines, each after those that it runs and
 * their aliases; then schedules and hooks; deletions come last. Making a plan writes nothing.
 */
import { PipelineSubmitted, PipelineVersion, Validation } from '@capstan/core/contracts/pipeline-answers';
import type { Json } from '@capstan/core/contracts/primitives';
import { referencesOf } from '@capstan/core/definition/checks/check-availability';
import type { UnplacedFinding } from '@capstan/core/definitions/findings';
import { describeDifferences, digestDefinition } from '@capstan/core/definitions/submission';
import { extendPointer } from '@capstan/core/json/values';
import { type ApiClient, jsonBody, path } from '../client/api-client.ts';
import { ProblemError } from '../errors.ts';
import { type FieldChange, findChanges, type ObjectChange } from './changes.ts';
import {
  type FileFindings,
  type FolderPipeline,
  findInFolder,
  type ProjectFolder,
  placeIn,
} from './folder.ts';
import { kinds, type MadeSecret, type ObjectKind, type ResolveVariables } from './kinds.ts';

export interface PlannedChange {
  readonly action: ObjectChange['action'];
  readonly kind: string;
  readonly name: string;
  readonly fields: readonly FieldChange[];
  /** Whether the server makes a secret, and shows it once. */
  readonly makesSecret: boolean;
  readonly perform: (client: ApiClient) => Promise<MadeSecret | null>;
}

export interface ProjectPlan {
  readonly changes: readonly PlannedChange[];
  /** Errors forbid to apply the plan. */
  readonly found: readonly FileFindings[];
}

interface PlanOptions {
  readonly resolve: ResolveVariables;
  readonly prune: boolean;
}

/** Undefined for what is not there. @throws other problems */
export async function unlessMissing<Value>(asked: Promise<Value>): Promise<Value | undefined> {
  try {
    return await asked;
  } catch (thrown) {
    if (thrown instanceof ProblemError && thrown.problem.code === 'not_found') return undefined;
    throw thrown;
  }
}

// Pipelines.

/** A stored version never changes. */
function refuseChanged({ source, definition }: FolderPipeline, stored: PipelineVersion): FileFindings {
  const { pipeline, version } = definition;
  const toJson = (value: object) => value as unknown as Json;
  const differences = describeDifferences(toJson(stored.definition), toJson(definition));
  const message = `${pipeline}@${version} is stored with other content, and a stored version never changes`;
  return placeIn(source, [
    {
      severity: 'error',
      code: 'version_conflict',
      pointer: '/version',
      message,
      suggestion: 'raise the version',
    },
    ...differences.map((one): UnplacedFinding => ({ severity: 'error', ...one })),
  ]);
}

/** The pipelines of the folder that one runs, directly or not. */
function usedBy(one: FolderPipeline, folder: ProjectFolder): FolderPipeline[] {
  const used = new Set<FolderPipeline>();
  const visit = (user: FolderPipeline): void => {
    for (const reference of referencesOf(user.definition)) {
      const found = findInFolder(reference, folder);
      if (found === undefined || used.has(found) || found === one) continue;
      used.add(found);
      visit(found);
    }
  };
  visit(one);
  return [...used];
}

/** An alias of the folder that is not set yet is no fault: it is set before. */
function isSetBefore(
  { code, pointer }: UnplacedFinding,
  one: FolderPipeline,
  folder: ProjectFolder,
): boolean {
  const index = Number(/^\/steps\/(\d+)\/pipeline$/.exec(pointer)?.[1]);
  const reference = one.definition.steps[index]?.pipeline;
  return (
    code === 'pipeline_unknown' && reference !== undefined && findInFolder(reference, folder) !== undefined
  );
}

async function validate(
  client: ApiClient,
  one: FolderPipeline,
  folder: ProjectFolder,
): Promise<FileFindings> {
  const { text, type } = one.source;
  const pipelines = usedBy(one, folder).map(({ definition }) => definition);
  const body = jsonBody({ text, type, pipelines });
  const { value } = await client.post('/v1/validate', Validation, body);
  return {
    source: one.source,
    findings: value.findings.filter((finding) => !isSetBefore(finding, one, folder)),
  };
}

async function planPipeline(
  client: ApiClient,
  one: FolderPipeline,
  folder: ProjectFolder,
): Promise<{ readonly change: PlannedChange; readonly found: readonly FileFindings[] }> {
  const { pipeline, version } = one.definition;
  const where = path`/v1/pipelines/${pipeline}/versions/${version}`;
  const stored = (await unlessMissing(client.get(where, PipelineVersion)))?.value;
  const isNew = stored === undefined;
  const change: PlannedChange = {
    action: isNew ? 'create' : 'unchanged',
    kind: 'pipeline',
    name: `${pipeline}@${version}`,
    fields: [],
    makesSecret: false,
    perform: async (api) => {
      await api.post('/v1/pipelines', PipelineSubmitted, one.source);
      return null;
    },
  };
  if (isNew) return { change, found: [await validate(client, one, folder)] };
  const isChanged = stored.digest !== digestDefinition(one.definition);
  return { change, found: isChanged ? [refuseChanged(one, stored)] : [] };
}

/** The aliases that pipelines of the folder name, each before its first user. */
function mergeAliases(
  pipelines: readonly (readonly [FolderPipeline, PlannedChange])[],
  aliases: readonly PlannedChange[],
): PlannedChange[] {
  const merged = new Set<PlannedChange>();
  for (const [{ definition }, change] of pipelines) {
    for (const reference of referencesOf(definition)) {
      const alias = aliases.find(({ name, action }) => name === reference && action !== 'delete');
      if (alias !== undefined) merged.add(alias);
    }
    merged.add(change);
  }
  return [...merged, ...aliases.filter((alias) => !merged.has(alias))];
}

// The objects of `project.yaml`.

function toPlanned(change: ObjectChange, options: KindOptions): PlannedChange {
  const { kind } = options;
  const one = change.action === 'delete' ? change.found : change.wanted;
  const found = change.action === 'create' ? undefined : change.found;
  return {
    action: change.action,
    kind: kind.kind,
    name: one.shown ?? one.name,
    fields: change.action === 'change' ? change.fields : [],
    makesSecret: change.action === 'create' && kind.makesSecret(change.wanted),
    perform: async (client) => {
      try {
        if (change.action !== 'delete') return await kind.put(client, change.wanted, found);
        await kind.remove(client, change.found);
        return null;
      } catch (thrown) {
        if (options.isRetry || !isOvertaken(thrown)) throw thrown;
        return performAgain(client, one.name, options);
      }
    },
  };
}

/** Another client has made or removed the object since the plan was made. */
function isOvertaken(thrown: unknown): boolean {
  return thrown instanceof ProblemError && ['state_conflict', 'not_found'].includes(thrown.problem.code);
}

interface KindOptions extends PlanOptions {
  readonly kind: ObjectKind;
  readonly file: ProjectFolder['file'];
  readonly isRetry: boolean;
}

async function performAgain(
  client: ApiClient,
  name: string,
  options: KindOptions,
): Promise<MadeSecret | null> {
  const again = await planKind(client, { ...options, isRetry: true });
  const own = again.find(({ change }) => change.action !== 'unchanged' && nameOf(change) === name);
  return own === undefined ? null : own.planned.perform(client);
}

function nameOf(change: ObjectChange): string {
  return change.action === 'delete' ? change.found.name : change.wanted.name;
}

async function planKind(client: ApiClient, options: KindOptions) {
  const { kind } = options;
  const wanted = kind.wanted(options.file, options.resolve);
  if (wanted === null) return [];
  const { switches } = kind;
  const found = await kind.find(client);
  return findChanges(wanted, found, { switches, prune: options.prune }).map((change) => ({
    change,
    planned: toPlanned(change, options),
  }));
}

/** Pipelines and versions that `project.yaml` names, and neither the folder nor the server has. */
async function findUnknownTargets(client: ApiClient, folder: ProjectFolder): Promise<UnplacedFinding[]> {
  const { pipeline_aliases: aliases = {}, schedules = {}, hooks = {} } = folder.file;
  const targets = [
    ...Object.entries(aliases).flatMap(([pipeline, names]) =>
      Object.entries(names).map(([alias, version]) => ({
        pointer: extendPointer('/pipeline_aliases', pipeline, alias),
        pipeline,
        version,
      })),
    ),
    ...Object.entries({ schedules, hooks }).flatMap(([section, members]) =>
      Object.entries(members).map(([name, { pipeline, version, alias }]) => ({
        pointer: extendPointer('', section, name, 'pipeline'),
        pipeline,
        version: version ?? (alias === undefined ? undefined : aliases[pipeline]?.[alias]),
      })),
    ),
  ];
  const faults: UnplacedFinding[] = [];
  for (const { pointer, pipeline, version } of targets) {
    const name = `${pipeline}@${version ?? 'latest'}`;
    if (findInFolder(name, folder) !== undefined) continue;
    const plain = path`/v1/pipelines/${pipeline}`;
    const where = version === undefined ? plain : path`/v1/pipelines/${pipeline}/versions/${version}`;
    if ((await unlessMissing(client.get(where, PipelineVersion))) !== undefined) continue;
    const message = `there is no ${name}, neither in the folder nor on the server`;
    faults.push({ severity: 'error', code: 'pipeline_unknown', pointer, message });
  }
  return faults;
}

export async function planProject(
  client: ApiClient,
  folder: ProjectFolder,
  options: PlanOptions,
): Promise<ProjectPlan> {
  const { source, file } = folder;
  const found: FileFindings[] = [];
  if (source !== null) found.push(placeIn(source, await findUnknownTargets(client, folder)));
  const pipelines: [FolderPipeline, PlannedChange][] = [];
  for (const one of folder.pipelines) {
    const planned = await planPipeline(client, one, folder);
    pipelines.push([one, planned.change]);
    found.push(...planned.found);
  }
  const planned = new Map<ObjectKind, readonly PlannedChange[]>();
  for (const kind of kinds) {
    const changes = await planKind(client, { ...options, kind, file, isRetry: false });
    planned.set(
      kind,
      changes.map((one) => one.planned),
    );
  }
  const [[, aliases = []] = [], ...others] = [...planned];
  const all = [...mergeAliases(pipelines, aliases), ...others.flatMap(([, changes]) => changes)];
  const isDeletion = ({ action }: PlannedChange): boolean => action === 'delete';
  const deletions = all.filter(isDeletion).toReversed();
  return { changes: [...all.filter((one) => !isDeletion(one)), ...deletions], found };
}

/**
 * From the text of a fleet file to the instances that it asks for, or to all its faults with line and column. It reads
 * the wrap files that the fleet file names, and starts nothing.
 */
import { readFileSync, statSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';
import { isPath } from '@capstan/capability/bootstrap/packages';
import { findFolderFault } from '@capstan/capability/bootstrap/start-capability';
import { findProgramFault, type Prerequisite } from '@capstan/capability/lifecycle/prerequisites';
import type { Registrable } from '@capstan/capability/lifecycle/registration';
import { findWarmUpFault } from '@capstan/core/contracts/capability';
import { entryKinds, type FleetEntry, FleetFile } from '@capstan/core/contracts/fleet-file';
import { findTakesFault } from '@capstan/core/contracts/host';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { Json } from '@capstan/core/contracts/primitives';
import { createFindingPlacer, type UnplacedFinding } from '@capstan/core/definitions/findings';
import { readJson } from '@capstan/core/definitions/source/read-json';
import { readYaml } from '@capstan/core/definitions/source/read-yaml';
import { detectFormat, findSource, type SourceNode } from '@capstan/core/definitions/source/source-node';
import { readStrict } from '@capstan/core/definitions/strict-shape';
import { parseDuration } from '@capstan/core/duration';
import { extendPointer } from '@capstan/core/json/values';
import { findCostFaults } from '@capstan/core/money/cost-expressions';
import { maskText, missingValue, readEnvironment } from '@capstan/wrap/file-variables';
import { readWrapFile, readWrapPart, type WrapDefinition } from '@capstan/wrap/wrap-file';

/** What runs. */
type InstanceSource =
  | { readonly kind: 'wrap'; readonly folder: string; readonly text: string }
  | { readonly kind: 'program'; readonly folder: string; readonly command: readonly [string, ...string[]] }
  | { readonly kind: 'module'; readonly source: string };

export interface PlannedInstance {
  readonly name: string;
  readonly source: InstanceSource;
  /** Its own variables. */
  readonly environment: Readonly<Record<string, string>>;
  /** Facts of the file for its registration; they replace those of the capability. */
  readonly facts: Partial<Omit<Registrable, 'spec'>>;
  readonly port: number | null;
  readonly advertiseUrl: string | null;
  readonly restart: 'always' | 'on_failure' | 'never';
  readonly maxRestarts: number;
  readonly readyMs: number;
  readonly stopMs: number;
}

export interface FleetPlan {
  /** Of the file. */
  readonly folder: string;
  readonly listen: NonNullable<FleetFile['listen']>;
  readonly instances: readonly PlannedInstance[];
  /** Variables that are not set. */
  readonly missing: readonly string[];
  /** Of its wraps. */
  readonly prerequisites: readonly Prerequisite[];
  /** The fleet file and the files that it names. */
  readonly files: readonly string[];
}

/** The faults of one file. */
export interface FleetFaults {
  readonly name: string;
  /** Its text as messages may show it. */
  readonly shown: string;
  readonly findings: readonly Finding[];
}

export interface FleetSource {
  readonly file: string;
  readonly environment: NodeJS.ProcessEnv;
  /** A variable that is not set is no fault: the file is only checked. */
  readonly checks: boolean;
}

interface FleetText extends FleetSource {
  readonly folder: string;
  readonly text: string;
  readonly root: SourceNode;
  readonly faults: UnplacedFinding[];
  /** Faults of parts that have been placed already, and of other files. */
  readonly elsewhere: FleetFaults[];
  readonly missing: Set<string>;
  readonly prerequisites: Prerequisite[];
  readonly files: Set<string>;
}

function refuse(reading: FleetText, pointer: string, message: string): void {
  reading.faults.push({ severity: 'error', code: 'value_invalid', pointer, message });
}

/** Keys that only some kinds have. */
const kindsOf: Readonly<Partial<Record<keyof FleetEntry, readonly string[]>>> = {
  folder: ['program'],
  settle: ['program'],
  count: ['program', 'module'],
};

/** @returns null after a fault */
function kindOf(entry: FleetEntry, pointer: string, reading: FleetText): InstanceSource['kind'] | null {
  const given = entryKinds.filter((kind) => entry[kind] !== undefined);
  const [kind] = given;
  if (kind === undefined || given.length > 1) {
    refuse(
      reading,
      pointer,
      `it has ${given.join(' and ') || 'none'} of ${entryKinds.join(', ')}; it needs one`,
    );
    return null;
  }
  for (const [key, kinds] of Object.entries(kindsOf)) {
    if (!(key in entry) || kinds.includes(kind)) continue;
    refuse(
      reading,
      extendPointer(pointer, key),
      `"${key}" goes with ${kinds.join(' and ')}, and not with ${kind}`,
    );
  }
  return kind;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Undefined after a fault. */
function readText(path: string, pointer: string, reading: FleetText): string | undefined {
  reading.files.add(path);
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    refuse(
      reading,
      pointer,
      code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read: ${code}`,
    );
    return undefined;
  }
}

/** An entry, or a key of one. */
interface EntryPlace {
  readonly pointer: string;
  readonly reading: FleetText;
}

/** What the router would refuse: facts of the entry, alone or beside those of its capability. */
function checkFacts(
  { cost, warm_up }: FleetEntry,
  capability: Partial<Registrable>,
  { pointer, reading }: EntryPlace,
): void {
  const cost_model = cost ?? capability.cost_model;
  const given = { warm_up: warm_up ?? capability.warm_up };
  const unpaid = cost_model === undefined ? null : findWarmUpFault({ ...given, cost_model });
  if (unpaid !== null)
    refuse(reading, extendPointer(pointer, warm_up ? 'warm_up' : 'cost'), `warm_up ${unpaid}`);
  if (cost === undefined) return;
  for (const { field, message } of findCostFaults({
    cost_model: cost,
    settle: capability.settle ?? 'computed',
  }))
    refuse(reading, extendPointer(pointer, 'cost', field), message);
}

function acceptWrap(
  { capability, missing }: WrapDefinition,
  own: FleetEntry,
  { environment, ...place }: EntryPlace & { readonly environment: NodeJS.ProcessEnv },
): void {
  for (const name of missing) place.reading.missing.add(name);
  if (hasPath(environment)) place.reading.prerequisites.push(...capability.prerequisites);
  checkFacts(own, capability, place);
}

/** Also checks it. Null after a fault. */
function planWrap(
  wrap: NonNullable<FleetEntry['wrap']>,
  environment: NodeJS.ProcessEnv,
  { pointer, reading, own }: EntryPlace & { readonly own: FleetEntry },
): InstanceSource | null {
  const { folder, root, text, checks } = reading;
  const at = extendPointer(pointer, 'wrap');
  const options = { stateDir: folder, environment, checks };
  if (typeof wrap !== 'string') {
    const part = findSource(root, at).node;
    const read = readWrapPart({ root: part, text }, { ...options, folder });
    if ('findings' in read) reading.elsewhere.push({ name: reading.file, ...read });
    else acceptWrap(read, own, { pointer, reading, environment });
    return { kind: 'wrap', folder, text: JSON.stringify(wrap) };
  }
  const path = resolve(folder, wrap);
  const written = readText(path, at, reading);
  if (written === undefined) return null;
  const read = readWrapFile(written, { ...options, folder: dirname(path) });
  const name = relative(process.cwd(), path) || basename(path);
  if ('findings' in read) reading.elsewhere.push({ name, ...read });
  else acceptWrap(read, own, { pointer, reading, environment });
  return { kind: 'wrap', folder: dirname(path), text: written };
}

function planProgram(
  own: FleetEntry,
  environment: NodeJS.ProcessEnv,
  { pointer, reading }: EntryPlace,
): InstanceSource {
  const { program, folder = '.', settle = 'computed' } = own;
  const place = resolve(reading.folder, folder);
  const isPlace = isFolder(place);
  if (!isPlace) refuse(reading, extendPointer(pointer, 'folder'), `there is no folder ${place}`);
  const fault =
    isPlace && typeof program === 'object' ? findProgramFault(program[0], environment, place) : null;
  if (fault !== null && hasPath(environment)) refuse(reading, extendPointer(pointer, 'program', 0), fault);
  checkFacts(own, { settle }, { pointer, reading });
  const command = typeof program === 'string' ? (['/bin/sh', '-c', program] as const) : program;
  return { kind: 'program', folder: place, command: command ?? ['/bin/sh'] };
}

/** False where a variable of it is not set, so that nothing is known about its programs. */
function hasPath({ PATH = '' }: NodeJS.ProcessEnv): boolean {
  return !PATH.includes(missingValue);
}

/** A folder beside the file, else what npm installs. */
function planModule(
  own: FleetEntry,
  environment: NodeJS.ProcessEnv,
  { pointer, reading }: EntryPlace,
): InstanceSource {
  const { module = '' } = own;
  const at = extendPointer(pointer, 'module');
  // Whether the module reports its costs is known when it runs.
  checkFacts(own, { settle: 'reported' }, { pointer, reading });
  const path = resolve(reading.folder, module);
  const isFound = isFolder(path);
  const gone = isPath(module) ? `there is no folder ${path}` : null;
  const fault = isFound ? findFolderFault(path, environment) : gone;
  if (fault !== null && hasPath(environment)) refuse(reading, at, fault);
  return { kind: 'module', source: isFound ? path : module };
}

/** Variables of the entry and of the defaults; texts may name those of the environment. */
function readVariables(name: string, { defaults, capabilities }: FleetFile, reading: FleetText) {
  const read = (env: FleetEntry['env'], pointer: string): Readonly<Record<string, string>> => {
    const { value, faults, missing } = readEnvironment((env ?? {}) as Json, reading.environment, pointer);
    for (const one of missing) reading.missing.add(one);
    const counted = reading.checks ? faults.filter(({ code }) => code !== 'variable_missing') : faults;
    reading.faults.push(...counted.map((fault) => ({ severity: 'error' as const, ...fault })));
    return Object.fromEntries(Object.entries(value as object).map(([key, one]) => [key, String(one)]));
  };
  const own = extendPointer('', 'capabilities', name, 'env');
  return { ...read(defaults?.env, '/defaults/env'), ...read(capabilities[name]?.env, own) };
}

function factsOf(entry: FleetEntry, { host }: FleetFile): PlannedInstance['facts'] {
  const { tags, slots, cost, settle, warm_up, shared_with, takes, max_resident } = entry;
  const facts = { tags, max_concurrency: slots, cost_model: cost, settle, warm_up, shared_with };
  const given = Object.entries({ ...facts, host, takes, max_resident }).filter(
    ([, value]) => value !== undefined,
  );
  return Object.fromEntries(given);
}

function planEntry(name: string, file: FleetFile, reading: FleetText): PlannedInstance[] {
  const pointer = extendPointer('', 'capabilities', name);
  const own = file.capabilities[name] ?? {};
  const entry: FleetEntry = { ...file.defaults, ...own };
  const kind = kindOf(own, pointer, reading);
  const takesFault = findTakesFault({ host: file.host, takes: own.takes });
  if (takesFault !== null) refuse(reading, extendPointer(pointer, 'takes'), takesFault);
  const environment = readVariables(name, file, reading);
  if (kind === null) return [];
  const seen = { ...reading.environment, ...environment };
  const place = { pointer, reading };
  const source =
    kind === 'wrap'
      ? planWrap(own.wrap ?? '', seen, { ...place, own })
      : kind === 'program'
        ? planProgram(own, seen, place)
        : planModule(own, seen, place);
  if (source === null) return [];
  const planned: PlannedInstance = {
    name,
    source,
    environment,
    facts: factsOf(entry, file),
    port: entry.port ?? null,
    advertiseUrl: entry.advertise_url ?? null,
    restart: entry.restart ?? 'always',
    maxRestarts: entry.max_restarts ?? Number.POSITIVE_INFINITY,
    readyMs: parseDuration(entry.ready_timeout ?? '5m'),
    stopMs: parseDuration(entry.stop_timeout ?? '10s'),
  };
  return replicate(planned, entry, { pointer, reading });
}

const lastPort = 65_535;

/** `NAME-1`, `NAME-2`, …: copies have one port after the other. */
function replicate(
  planned: PlannedInstance,
  { count, advertise_url }: FleetEntry,
  { pointer, reading }: { readonly pointer: string; readonly reading: FleetText },
): PlannedInstance[] {
  if (count === undefined) return [planned];
  if (advertise_url !== undefined) {
    refuse(
      reading,
      extendPointer(pointer, 'advertise_url'),
      'copies have an address each; leave out count, and write an entry for each',
    );
  }
  const { port } = planned;
  if (port !== null && port + count - 1 > lastPort) {
    refuse(
      reading,
      extendPointer(pointer, 'port'),
      `is ${port}, and ${count} copies have ports up to ${port + count - 1}; 1 to ${lastPort - count + 1} is allowed`,
    );
  }
  return Array.from({ length: count }, (_, index) => ({
    ...planned,
    name: `${planned.name}-${index + 1}`,
    port: port === null ? null : port + index,
    environment: { ...planned.environment, REPLICA: String(index + 1) },
  }));
}

/** Names of copies, ports and addresses are different. */
function refuseDoubles(byEntry: ReadonlyMap<string, readonly PlannedInstance[]>, reading: FleetText): void {
  const seen = new Map<string, string>();
  for (const [entry, instances] of byEntry) {
    const pointer = extendPointer('', 'capabilities', entry);
    for (const { name, port, advertiseUrl } of instances) {
      const marks = [
        [pointer, name],
        [extendPointer(pointer, 'port'), port === null ? null : `port ${port}`],
        [extendPointer(pointer, 'advertise_url'), advertiseUrl],
      ] as const;
      for (const [at, mark] of marks) {
        const other = mark === null ? undefined : seen.get(mark);
        if (other !== undefined) refuse(reading, at, `${mark} is taken by ${other}`);
        else if (mark !== null) seen.set(mark, entry);
      }
    }
  }
}

/** Texts that a program, a call or another file reads, or that name variables. */
const otherTexts: ReadonlySet<string> = new Set(['env', 'program', 'wrap', 'warm_up', 'cost']);

/** Variables where none is replaced. */
function findMisplaced(value: Json, pointer = ''): UnplacedFinding[] {
  if (typeof value === 'string') {
    const { 0: found, index } = /\$\{\w*\}?/.exec(value) ?? {};
    const message = `${found} is not replaced here; allowed is env`;
    return found === undefined
      ? []
      : [{ severity: 'error', code: 'variable_misplaced', pointer, offset: index, message }];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const isOther = otherTexts.has(key) && pointer !== '/capabilities';
    return isOther ? [] : findMisplaced(inner, extendPointer(pointer, key));
  });
}

export type FleetReading = { readonly plan: FleetPlan } | { readonly faults: readonly FleetFaults[] };

/** @throws Error when the fleet file itself cannot be read */
export function readFleetPlan(source: FleetSource): FleetReading {
  const path = resolve(source.file);
  const text = readFileSync(path, 'utf8');
  const { root, problems } = detectFormat(text, null) === 'json' ? readJson(text) : readYaml(text);
  const faulty = (
    found: readonly UnplacedFinding[],
    elsewhere: readonly FleetFaults[] = [],
  ): FleetReading => {
    const findings = createFindingPlacer(text, root)(found);
    const own = { name: source.file, shown: maskText(text).shown, findings };
    return { faults: [...(findings.length === 0 ? [] : [own]), ...elsewhere] };
  };
  if (root === null || problems.length > 0) {
    return faulty(problems.map((problem) => ({ severity: 'error', ...problem })));
  }
  const shape = readStrict(FleetFile, root.value, { root, text });
  const misplaced = findMisplaced(root.value);
  if ('faults' in shape) return faulty([...misplaced, ...shape.faults]);
  const { data } = shape;
  const found = { faults: misplaced, elsewhere: [], missing: new Set<string>(), files: new Set([path]) };
  const reading: FleetText = { ...source, ...found, prerequisites: [], folder: dirname(path), text, root };
  const names = Object.keys(data.capabilities);
  if (names.length === 0) refuse(reading, '/capabilities', 'it holds no capability; name one at least');
  const byEntry = new Map(names.map((name) => [name, planEntry(name, data, reading)]));
  const instances = [...byEntry.values()].flat();
  refuseDoubles(byEntry, reading);
  const { faults, elsewhere, missing, prerequisites, files, folder } = reading;
  if (faults.length + elsewhere.length > 0) return faulty(faults, elsewhere);
  const { listen = {} } = data;
  return { plan: { folder, listen, instances, prerequisites, missing: [...missing], files: [...files] } };
}

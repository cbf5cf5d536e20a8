/**
 * Arguments and options that commands share: parsers of option values for commander, whose errors name the allowed
 * values; references to runs; and the fields of a routed call.
 */

import { readFile, stat } from 'node:fs/promises';
import { durationExamples, readDuration } from '@capstan/core/contracts/duration-text';
import { Priority } from '@capstan/core/contracts/primitives';
import { Run, RunList } from '@capstan/core/contracts/run';
import { createLineTable } from '@capstan/core/definitions/source/source-node';
import { findLostNumbers } from '@capstan/core/json/numbers';
import { InvalidArgumentError } from 'commander';
import { type ApiAnswer, type ApiClient, path } from '../client/api-client.ts';
import { oneOf, parsed, type Term, usually } from '../command.ts';
import { UsageError } from '../errors.ts';
import type { Shell } from '../shell.ts';

export function collectPair(text: string, previous: Readonly<Record<string, string>> = {}) {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Write it as name=value.');
  return { ...previous, [text.slice(0, at)]: text.slice(at + 1) };
}

export function collectText(text: string, previous: readonly string[] = []): string[] {
  return [...previous, text];
}

export function readDurationMs(text: string): number {
  const ms = readDuration(text);
  if (ms === undefined) throw new InvalidArgumentError(`Write it as ${durationExamples}.`);
  return ms;
}

export function readUsd(text: string): number {
  const usd = Number(text);
  if (text.trim() === '' || !Number.isFinite(usd) || usd < 0) {
    throw new InvalidArgumentError('Write an amount of US dollars, such as 0.05.');
  }
  return usd;
}

/** Above 0 and below 1. */
export function readShare(text: string): number {
  const share = Number(text);
  if (!(share > 0 && share < 1))
    throw new InvalidArgumentError('Write a share between 0 and 1, such as 0.8.');
  return share;
}

/** `--budget`, with its alias `--ceiling`: the command reads `budget`. */
export function budgetOption(about: string): Term<number | undefined> {
  return { about: `${about} (also: --ceiling)`, parse: readUsd, alias: '--ceiling <usd>' };
}

export function readCeiling(text: string): number | null {
  if (text === 'none') return null;
  try {
    return readUsd(text);
  } catch {
    throw new InvalidArgumentError('Write an amount of US dollars, such as 2.50, or none.');
  }
}

export const jobHelp = 'the job: a file, - for stdin, or inline JSON such as \'{"n": 1}\'';

export function readItem(text: string): number {
  const item = Number(text);
  if (!Number.isInteger(item) || item < 1) throw new InvalidArgumentError('Write a whole number from 1 on.');
  return item;
}

function readUpTo(most: number) {
  return (text: string): number => {
    const limit = Number(text);
    if (!Number.isInteger(limit) || limit < 1 || limit > most) {
      throw new InvalidArgumentError(`Write a whole number from 1 to ${most}.`);
    }
    return limit;
  };
}

/** Of one page. */
export const readLimit = readUpTo(200);
/** Of several pages. */
export const readLongLimit = readUpTo(10_000);

/** At most the API's limit for one attempt. */
function readTimeoutMs(text: string): number {
  const ms = readDurationMs(text);
  if (ms < 1 || ms > 86_400_000) throw new InvalidArgumentError('Write a duration from 1ms to 24h.');
  return Math.round(ms);
}

// References to runs, and their paths in the API.

export const latestRun = '@latest';

export const runArgument = { '[run]': usually('run id, or @latest', latestRun) } as const;

/** @throws UsageError for `@latest` when there is no run yet */
export async function resolveRunId(client: ApiClient, reference: string): Promise<string> {
  if (reference !== latestRun) return reference;
  const { value } = await client.get('/v1/runs', RunList, { limit: 1, parent: 'none' });
  const [newest] = value.items;
  if (newest === undefined) throw new UsageError('there is no run yet; start one with `capstan run FILE`');
  return newest.run_id;
}

export function getRun(client: ApiClient, runId: string): Promise<ApiAnswer<Run>> {
  return client.get(path`/v1/runs/${runId}`, Run);
}

// The fields and options of a routed call that `exec` and `route` share.

export interface RouteOptions {
  readonly input?: string;
  readonly priority?: string;
  readonly budget?: number;
  readonly version?: string;
  readonly tag?: readonly string[];
  readonly timeout?: number;
  readonly onBudget?: string;
  readonly affinity?: string;
}

export const routeOptions = {
  '--budget <usd>': budgetOption('the most that the call may cost'),
  '-i, --input <json>': 'the input: inline JSON, @FILE, or - for stdin; such as \'{"n": 1}\'',
  '-p, --priority <priority>': oneOf('who may wait', Priority.options),
  '-v, --version <range>': 'version of the capability, or a range such as ^1.2',
  '-t, --tag <tag>': parsed('only instances with this tag (repeatable)', collectText),
  '--affinity <text>': 'the key of what it needs loaded, over input (default: that of the capability)',
  '--timeout <duration>': parsed('of the call (default: 5m)', readTimeoutMs),
} as const;

/** @throws UsageError when it is not a JSON object, or cannot be read */
export async function readInput(text: string, { stdin }: Shell): Promise<Readonly<Record<string, unknown>>> {
  const file = text.startsWith('@') ? text.slice(1) : text;
  const source =
    text === '-' || text.startsWith('@')
      ? await readSource(file, stdin)
      : { name: '--input', text, type: 'application/json' as const };
  const value = await parseSource(source);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw new UsageError('the input must be a JSON object');
}

/** The fields of the body beside `input`; the API fills in defaults. */
export function toRouteFields({ priority, budget, version, tag, ...options }: RouteOptions) {
  const { timeout, onBudget, affinity } = options;
  return {
    on_budget: onBudget,
    priority,
    version,
    tags: tag,
    budget_ceiling_usd: budget,
    timeout_ms: timeout,
    affinity,
  };
}

// Documents named on the command line: a path, or `-` for stdin; YAML or JSON.

export interface SourceFile {
  /** The name in findings: the path as given, or `stdin`. */
  readonly name: string;
  readonly text: string;
  readonly type: 'application/json' | 'application/yaml';
}

async function readStdin(stdin: Shell['stdin']): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

function decode(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${name} is not UTF-8 text`);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function typeOf(path: string, text: string): SourceFile['type'] {
  if (/\.json$/i.test(path)) return 'application/json';
  if (/\.ya?ml$/i.test(path)) return 'application/yaml';
  return isJson(text) ? 'application/json' : 'application/yaml';
}

/** @throws UsageError when it cannot be read */
export async function readSource(path: string, stdin: Shell['stdin']): Promise<SourceFile> {
  const name = path === '-' ? 'stdin' : path;
  try {
    const text = decode(name, path === '-' ? await readStdin(stdin) : await readFile(path));
    return { name, text, type: typeOf(path, text) };
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    const reason = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown);
    throw new UsageError(`cannot read ${name}: ${reason}`, { cause: thrown });
  }
}

/** YAML is read as in a definition. @throws UsageError with the first problem, and its line and column */
export async function parseSource({ name, text, type }: SourceFile): Promise<unknown> {
  return type === 'application/yaml' ? parseYaml(name, text) : parseJsonInput(name, text);
}

/** @throws UsageError, also for a number that would change */
export function parseJsonInput(name: string, text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
  const [lost] = findLostNumbers(text);
  if (lost === undefined) return value;
  throw refuseAt(name, { ...lost, message: `${lost.pointer || '/'}: ${lost.message}` });
}

interface PlacedFault {
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly suggestion?: string;
}

function refuseAt(name: string, { line, column, message, suggestion }: PlacedFault): UsageError {
  const advice = suggestion === undefined ? '' : `; ${suggestion}`;
  return new UsageError(`${name}:${line}:${column}: ${message}${advice}`);
}

async function parseYaml(name: string, text: string): Promise<unknown> {
  const { readYaml } = await import('@capstan/core/definitions/source/read-yaml');
  const { root, problems } = readYaml(text);
  const [problem] = problems;
  if (problem === undefined) return root?.value;
  throw refuseAt(name, { ...createLineTable(text)(problem.at), ...problem });
}

export async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() ?? false;
}

/** Whether an argument that may be a file or a name means a file. */
export async function isFileArgument(argument: string): Promise<boolean> {
  if (argument === '-' || /\.(ya?ml|json)$/i.test(argument)) return true;
  return isFile(argument);
}

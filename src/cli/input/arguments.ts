/**
 * Arguments and options that commands share: readers of option values for commander, each of which says in its
 * refusal what was allowed; which run a command means; and the fields of a routed call.
 */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { Priority } from '../../contracts/primitives.ts';
import { Run, RunList } from '../../contracts/run.ts';
import type { ApiAnswer, ApiClient } from '../client/api-client.ts';
import { UsageError } from '../errors.ts';
import { parseDuration } from '../render/formats.ts';
import type { Shell } from '../shell.ts';
import { parseSource, readSource } from './source-file.ts';

export function collectPair(text: string, previous: Readonly<Record<string, string>> = {}) {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Write it as name=value.');
  return { ...previous, [text.slice(0, at)]: text.slice(at + 1) };
}

export function collectText(text: string, previous: readonly string[] = []): string[] {
  return [...previous, text];
}

export function readDurationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError('Write it as 500ms, 30s, 5m, 2h or 1d.');
  return ms;
}

export function readUsd(text: string): number {
  const usd = Number(text);
  if (text.trim() === '' || !Number.isFinite(usd) || usd < 0) {
    throw new InvalidArgumentError('Write an amount of US dollars, such as 0.05.');
  }
  return usd;
}

/** `--budget`, and `--ceiling` as another name of it: the command sees `budget`. */
export function addBudgetOption(command: Command, description: string): void {
  command
    .option('--budget <usd>', `${description} (also: --ceiling)`, readUsd)
    .addOption(new Option('--ceiling <usd>').argParser(readUsd).hideHelp())
    .on('option:ceiling', () => {
      command.setOptionValueWithSource('budget', command.getOptionValue('ceiling'), 'cli');
    });
}

export function readItem(text: string): number {
  const item = Number(text);
  if (!Number.isInteger(item) || item < 1) throw new InvalidArgumentError('Write a whole number from 1 on.');
  return item;
}

export function readLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > 200) {
    throw new InvalidArgumentError('Write a whole number from 1 to 200.');
  }
  return limit;
}

/** At most what the API allows one attempt. */
function readTimeoutMs(text: string): number {
  const ms = readDurationMs(text);
  if (ms < 1 || ms > 86_400_000) throw new InvalidArgumentError('Write a duration from 1ms to 24h.');
  return Math.round(ms);
}

// Which run a command means, and where the API keeps it.

export const latestRun = '@latest';

export function runPath(runId: string, rest = ''): string {
  return `/v1/runs/${encodeURIComponent(runId)}${rest}`;
}

/** @throws UsageError when `@latest` is asked for and there is no run yet */
export async function resolveRunId(client: ApiClient, reference: string): Promise<string> {
  if (reference !== latestRun) return reference;
  const { value } = await client.get('/v1/runs', RunList, { limit: 1, parent: 'none' });
  const [newest] = value.items;
  if (newest === undefined) throw new UsageError('there is no run yet; start one with `capstan run FILE`');
  return newest.run_id;
}

export function getRun(client: ApiClient, runId: string): Promise<ApiAnswer<Run>> {
  return client.get(runPath(runId), Run);
}

// The fields and options of a routed call that `exec` and `route` share.

export interface RouteOptions {
  readonly input?: string;
  readonly priority?: string;
  readonly budget?: number;
  readonly version?: string;
  readonly tag?: readonly string[];
  readonly timeout?: number;
}

export function addRouteOptions(command: Command): Command {
  addBudgetOption(command, 'the most that the call may cost');
  return command
    .option('-i, --input <json>', 'the input: inline JSON, @FILE, or - for stdin; such as \'{"n": 1}\'')
    .addOption(new Option('-p, --priority <priority>', 'who may wait').choices(Priority.options))
    .option('-v, --version <range>', 'version of the capability, or a range such as ^1.2')
    .option('-t, --tag <tag>', 'only instances with this tag (repeatable)', collectText)
    .option('--timeout <duration>', 'of the call (default: 5m)', readTimeoutMs);
}

/** @throws UsageError when it is no JSON object, or cannot be read */
export async function readInput(text: string, { stdin }: Shell): Promise<Readonly<Record<string, unknown>>> {
  const path = text.startsWith('@') ? text.slice(1) : text;
  const source =
    text === '-' || text.startsWith('@')
      ? await readSource(path, stdin)
      : { name: '--input', text, type: 'application/json' as const };
  const value = await parseSource(source);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw new UsageError('the input must be a JSON object');
}

/** Fields of the body beside `input`; what is not said is left to the API. */
export function toRouteFields({ priority, budget, version, tag, timeout }: RouteOptions) {
  return {
    priority,
    version,
    tags: tag,
    budget_ceiling_usd: budget,
    timeout_ms: timeout,
  };
}

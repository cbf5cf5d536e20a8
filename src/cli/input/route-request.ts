/** The fields and options of a routed call that `exec` and `route` share. */
import { type Command, Option } from 'commander';
import { Priority } from '../../contracts/primitives.ts';
import { UsageError } from '../errors.ts';
import type { Shell } from '../shell.ts';
import { addBudgetOption, collectText, readTimeoutMs } from './option-values.ts';
import { parseSource, readSource } from './source-file.ts';

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

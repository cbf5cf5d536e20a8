/**
 * The settings of a process that a command starts: the environment, and a file of variables for what it leaves open,
 * as `node --env-file` reads one.
 */
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { ConfigSchema, readConfig } from '../../config.ts';
import { createNameSuggester } from '../../core/nearest-name.ts';
import { ConfigurationError } from '../../errors/configuration-error.ts';
import { UsageError } from '../errors.ts';

/** Shorter names are near to too many that mean something else. */
const shortestChecked = 6;

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--env-file ${file} cannot be read: ${said}`);
  }
}

/** A file may hold variables of Temporal, Node or a cloud; one that is almost ours is a mistake. */
function checkNames(file: string, names: readonly string[]): void {
  const known = Object.keys(ConfigSchema.shape);
  const suggest = createNameSuggester(known.filter((name) => name.length >= shortestChecked));
  const wrong = names
    .filter((name) => name.length >= shortestChecked && !known.includes(name))
    .map((name) => ({ name, suggestion: suggest(name) }))
    .filter(({ suggestion }) => suggestion !== undefined);
  if (wrong.length === 0) return;
  const words = wrong.map(({ name, suggestion }) => `${name} is no setting, ${suggestion}`);
  throw new UsageError(`--env-file ${file}: ${words.join('; ')}`);
}

/** @returns what the file says and the environment leaves open */
export function readEnvFile(file: string | undefined, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (file === undefined) return {};
  const written = parseEnv(readFile(file)) as NodeJS.ProcessEnv;
  checkNames(file, Object.keys(written));
  return Object.fromEntries(Object.entries(written).filter(([name]) => environment[name] === undefined));
}

/** @throws UsageError that names every wrong variable, what was seen and what is allowed */
export function checkSettings(environment: NodeJS.ProcessEnv) {
  try {
    return readConfig(environment);
  } catch (thrown) {
    throw thrown instanceof ConfigurationError ? new UsageError(thrown.message) : thrown;
  }
}

/**
 * The address of the API and the credentials. Each part comes from its flag, else the environment, else the stack file
 * of a running `capstan dev`. The stack file's key and project are only sent to its own server.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StackFile } from '@capstan/core/contracts/stack';
import { UnreachableError, UsageError } from '../errors.ts';

export interface ConnectionFlags {
  readonly url?: string;
  readonly key?: string;
  readonly project?: string;
  /** Folder of the embedded stack. Default: CAPSTAN_DATA, else `.capstan`. */
  readonly data?: string;
}

export interface Connection {
  /** Without a trailing slash. */
  readonly url: string;
  readonly key: string | undefined;
  readonly project: string | undefined;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** The folder with the embedded stack's data: the flag, else CAPSTAN_DATA, else `.capstan`. */
export function dataFolder(given: string | undefined, environment: NodeJS.ProcessEnv): string {
  return given ?? nonEmpty(environment.CAPSTAN_DATA) ?? '.capstan';
}

function normaliseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`the API's URL must start with http:// or https://, not "${text}"`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

function isMissing(thrown: unknown): boolean {
  return (
    thrown instanceof Error && 'code' in thrown && (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR')
  );
}

function parseStack(file: string, text: string): StackFile {
  try {
    return StackFile.parse(JSON.parse(text));
  } catch (cause) {
    throw new UsageError(`${file} is not a stack file; remove it or start the stack again`, { cause });
  }
}

/** The stack file of the stack that runs from `folder`; undefined when none runs. @throws UsageError */
async function readStack(folder: string): Promise<StackFile | undefined> {
  const file = join(folder, 'stack.json');
  try {
    return parseStack(file, await readFile(file, 'utf8'));
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    if (thrown instanceof UsageError) throw thrown;
    throw new UsageError(`cannot read ${file}: ${String(thrown)}`);
  }
}

/**
 * @throws UnreachableError when no source names the address of Capstan
 * @throws UsageError when the URL or the stack file is invalid
 */
export async function resolveConnection(
  flags: ConnectionFlags,
  environment: NodeJS.ProcessEnv,
): Promise<Connection> {
  const givenUrl = nonEmpty(flags.url) ?? nonEmpty(environment.CAPSTAN_URL);
  const givenKey = nonEmpty(flags.key) ?? nonEmpty(environment.CAPSTAN_API_KEY);
  const givenProject = nonEmpty(flags.project) ?? nonEmpty(environment.CAPSTAN_PROJECT);
  const url = givenUrl === undefined ? undefined : normaliseUrl(givenUrl);
  if (url !== undefined && givenKey !== undefined) return { url, key: givenKey, project: givenProject };

  const folder = dataFolder(flags.data, environment);
  const stack = await readStack(folder);
  if (url === undefined && stack === undefined) {
    throw new UnreachableError(
      `no Capstan runs from ${folder}; start one with \`capstan dev\`, or give its address by --url`,
    );
  }
  const own = stack !== undefined && (url ?? normaliseUrl(stack.api_url)) === normaliseUrl(stack.api_url);
  const usesStackKey = own && givenKey === undefined;
  return {
    url: url ?? normaliseUrl(stack?.api_url ?? ''),
    key: givenKey ?? (own ? stack.api_key : undefined),
    project: givenProject ?? (usesStackKey ? stack.project_id : undefined),
  };
}

/**
 * Completes the environment of instances with the settings of a stack that runs on this machine.
 * @throws UnreachableError for an address without a key
 */
export async function routerEnvironment(
  given: NodeJS.ProcessEnv,
  isRegistered: boolean,
  data: string | undefined,
): Promise<NodeJS.ProcessEnv> {
  if (!isRegistered) return { ...given, ROUTER_URL: undefined };
  if (given.ROUTER_URL && !given.ROUTER_TOKEN)
    throw new UnreachableError(
      'ROUTER_URL is set, and ROUTER_TOKEN is not; set both, or only serve with --no-register',
    );
  if (given.ROUTER_URL) return given;
  const stack = await readStack(dataFolder(data, given));
  return stack === undefined ? given : stackEnvironment(given, stack);
}

/** The environment of instances that register at a stack. */
export function stackEnvironment(
  given: NodeJS.ProcessEnv,
  stack: Pick<StackFile, 'api_url' | 'api_key' | 'media_url'>,
): NodeJS.ProcessEnv {
  const { api_url: ROUTER_URL, api_key: ROUTER_TOKEN, media_url } = stack;
  return { ...given, ROUTER_URL, ROUTER_TOKEN, MEDIA_URL: given.MEDIA_URL || media_url };
}

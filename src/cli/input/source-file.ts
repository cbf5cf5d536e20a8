/** Documents named on the command line: a path, or `-` for stdin; YAML or JSON. */
import { readFile, stat } from 'node:fs/promises';
import { UsageError } from '../errors.ts';
import type { Shell } from '../shell.ts';

export interface SourceFile {
  /** As findings name it: the path as given, or `stdin`. */
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

/** @throws UsageError with the parser's words, which name line and column */
export async function parseSource({ name, text, type }: SourceFile): Promise<unknown> {
  try {
    if (type === 'application/json') return JSON.parse(text);
    const { parse } = await import('yaml');
    return parse(text, { schema: 'core', version: '1.2', merge: false, maxAliasCount: 100_000 });
  } catch (cause) {
    throw new UsageError(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
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

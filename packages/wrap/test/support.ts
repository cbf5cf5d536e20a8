/** Wrapped capabilities as running instances, with a media store in a folder. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type RunningInstance, readSettings, startInstance } from '@capstan/capability';
import { checkCapability } from '@capstan/capability/conformance';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { onTestFinished } from 'vitest';
import { aFolder } from '../../capability/test/support/folders.ts';
import { readWrapFile } from '../src/wrap-file.ts';

export function findingsOf(
  text: string,
  environment: NodeJS.ProcessEnv = {},
  folder = '/nowhere',
): readonly Finding[] {
  const reading = readWrapFile(text, { folder, stateDir: '/nowhere', environment });
  return 'findings' in reading ? reading.findings : [];
}

/** `line code`, with the suggestion, for whole comparisons. */
export function linesOf(findings: readonly Finding[]): string[] {
  return findings.map(({ line, code, message }) => `${line} ${code}: ${message}`);
}

export interface WrappedInstance extends RunningInstance {
  readonly lines: readonly string[];
  readonly mediaFolder: string;
  put(reference: string, bytes: string | Buffer): Promise<void>;
  get(reference: string): Promise<Buffer>;
}

interface Start {
  readonly environment?: NodeJS.ProcessEnv;
  readonly folder?: string;
  readonly stateDir?: string;
}

export async function startWrapped(
  text: string,
  { environment = {}, folder, stateDir }: Start = {},
): Promise<WrappedInstance> {
  const home = await aFolder();
  const reading = readWrapFile(text, {
    folder: folder ?? home,
    stateDir: stateDir ?? join(home, 'state'),
    environment: { ...process.env, ...environment },
  });
  if ('findings' in reading) throw new Error(linesOf(reading.findings).join('\n'));
  const mediaFolder = join(home, 'media');
  const lines: string[] = [];
  const settings = readSettings({ PORT: '0', MEDIA_URL: `file://${mediaFolder}` });
  const instance = await startInstance(reading.capability, {
    settings,
    print: (line) => lines.push(line),
    graceMs: 0,
  });
  onTestFinished(() => instance.stop());
  const pathOf = (reference: string): string => join(mediaFolder, reference.slice('media://'.length));
  return {
    ...instance,
    lines,
    mediaFolder,
    put: async (reference, bytes) => {
      await mkdir(dirname(pathOf(reference)), { recursive: true });
      await writeFile(pathOf(reference), bytes);
    },
    get: (reference) => readFile(pathOf(reference)),
  };
}

export interface WrappedAnswer {
  readonly status: number;
  readonly code: string | null;
  readonly body: { readonly ok: boolean; readonly output?: Record<string, unknown>; readonly error?: string };
}

interface CallOptions {
  readonly key?: string;
  /** Of the answer before. */
  readonly fault?: string | undefined;
  readonly signal?: AbortSignal;
}

export async function call(
  { endpoint }: RunningInstance,
  input: object,
  { key, fault, signal }: CallOptions = {},
): Promise<WrappedAnswer> {
  const headers = {
    'content-type': 'application/json',
    ...(key === undefined ? {} : { 'idempotency-key': key }),
    ...(fault === undefined ? {} : { 'x-previous-fault': fault }),
  };
  const response = await fetch(`${endpoint}/exec`, {
    method: 'POST',
    headers,
    body: JSON.stringify(input),
    signal: signal ?? null,
  });
  return {
    status: response.status,
    code: response.headers.get('x-error-code'),
    body: (await response.json()) as WrappedAnswer['body'],
  };
}

/** The lines of a streamed answer. */
export async function callInLines(
  { endpoint }: RunningInstance,
  input: object,
  stream?: string,
): Promise<Record<string, unknown>[]> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/x-ndjson',
    ...(stream === undefined ? {} : { 'x-stream': stream }),
  };
  const response = await fetch(`${endpoint}/exec`, { method: 'POST', headers, body: JSON.stringify(input) });
  const text = await response.text();
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Names of the checks of `capstan capability check` that fail. */
export async function failedChecks({ endpoint }: RunningInstance, input?: object): Promise<string[]> {
  const results = await checkCapability(endpoint, input);
  return results.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
}

/**
 * The console: one page, and the files that it consists of.
 *
 * The build is read into memory. A request names one of the listed files; no path of a request reaches the disk. The
 * build writes its hash last, so a new hash means that all files are complete. Until the first hash, a page reports
 * that the console is being built.
 */
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { AppError } from '@capstan/core/errors/app-error';
import { z } from 'zod';
import { acceptedEncoding } from './answer.ts';
import { missingConsolePage } from './documents/docs.ts';
import { type Answer, type Route, route } from './route.ts';
import { contentPolicy } from './security-headers.ts';

interface ConsoleFile {
  readonly type: string;
  /** The name changes with the content. */
  readonly isImmutable: boolean;
  readonly policy: string;
  readonly body: Buffer;
  readonly gzip?: Buffer | undefined;
  readonly brotli?: Buffer | undefined;
}

export interface ConsoleFiles {
  /** The page; null before the first build. */
  readonly page: () => Promise<ConsoleFile | null>;
  /** @param path below `/ui/`. Undefined: no such file. */
  readonly file: (path: string) => Promise<ConsoleFile | undefined>;
}

/** Besides the policy of every answer, the page has a worker and media. */
const pagePolicy = contentPolicy("worker-src 'self'", "media-src 'self'");

/** Policy of the worker, which compiles schemas to code: it has no network access. */
const workerPolicy = "default-src 'none';script-src 'self' 'unsafe-eval';connect-src 'none'";

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

const hashed = /^assets\/.*-[\w-]{8,}\.\w+$/;
const workerScript = /(?:^|[/.-])worker-[\w-]{8,}\.js$/;
const recheckMs = 1_000;

type Listed = ReadonlyMap<string, ConsoleFile>;

async function listFiles(folder: string): Promise<Listed> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) =>
      join(parentPath, name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    );
  const present = new Set(names);
  const read = (name: string) => (present.has(name) ? readFile(join(folder, name)) : undefined);
  const files = names.filter((name) => types[extname(name)] !== undefined);
  const loaded = files.map(async (name): Promise<[string, ConsoleFile]> => {
    const file = {
      type: types[extname(name)] as string,
      isImmutable: hashed.test(name),
      policy: workerScript.test(name) ? workerPolicy : pagePolicy,
      body: await readFile(join(folder, name)),
      gzip: await read(`${name}.gz`),
      brotli: await read(`${name}.br`),
    };
    return [name, file];
  });
  return new Map(await Promise.all(loaded));
}

/** @param folder the build's folder; it may not exist yet */
export function createConsoleFiles(folder: string): ConsoleFiles {
  let hash: string | null = null;
  let files: Listed = new Map();
  let checkedAt = Number.NEGATIVE_INFINITY;
  let check: Promise<void> = Promise.resolve();

  const look = async (): Promise<void> => {
    const seen = await readFile(join(folder, '.hash'), 'utf8').catch(() => null);
    if (seen === null || seen === hash) return;
    files = await listFiles(folder);
    hash = seen;
  };
  const refresh = (): Promise<void> => {
    if (performance.now() - checkedAt < recheckMs) return check;
    checkedAt = performance.now();
    check = look().catch(() => undefined); // a new build has begun; the next check sees its end
    return check;
  };
  void refresh();
  return {
    page: async () => {
      await refresh();
      return files.get('index.html') ?? null;
    },
    file: async (path) => {
      await check;
      return files.get(path);
    },
  };
}

const FilePath = z.object({ file: z.string() });
const headers = z.object({ 'accept-encoding': z.string().optional() });

function leadToConsole(path: string, operation: string): Route {
  return route(`GET ${path}`, {
    operation,
    tag: 'console',
    summary: 'Redirect to the console',
    scope: null,
    responses: { 302: 'empty' },
    handle: () => ({ status: 302, headers: { Location: '/ui/' } }),
  });
}

/** @param files undefined: this server has no console */
export function consoleRoutes(files?: ConsoleFiles): Route[] {
  return [
    leadToConsole('/', 'go_to_console'),
    route('GET /ui/', {
      operation: 'get_console',
      tag: 'console',
      summary: 'Show the console',
      scope: null,
      headers,
      responses: { 200: { content: 'text/html' }, 503: { content: 'text/html' } },
      handle: async (_ctx, { headers }) => showPage(files, headers['accept-encoding']),
    }),
    leadToConsole('/ui', 'open_console'), // after /ui/, which it would match too
    route('GET /ui/{+file}', {
      operation: 'get_console_file',
      tag: 'console',
      summary: 'Answer a file of the console; any other path answers its page',
      scope: null,
      params: FilePath,
      headers,
      responses: { 200: { content: '*/*' }, 503: { content: 'text/html' } },
      handle: async (_ctx, { params: { file }, headers: { 'accept-encoding': accepted } }) => {
        const found = await files?.file(file);
        if (found !== undefined) return sendFile(found, accepted);
        if (!file.startsWith('assets/')) return showPage(files, accepted);
        throw new AppError(
          'not_found',
          'the console has no such file; reload the page, the console may have been updated',
        );
      },
    }),
  ];
}

type FileAnswer = Answer & { readonly status: 200 | 503; readonly body: Buffer | string };

async function showPage(files: ConsoleFiles | undefined, accepted: string | undefined): Promise<FileAnswer> {
  const page = await files?.page();
  if (page !== undefined && page !== null) return sendFile(page, accepted);
  const type = { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' };
  return {
    status: 503,
    headers: { ...type, 'Content-Security-Policy': pagePolicy, 'Retry-After': '2' },
    body: missingConsolePage,
  };
}

function sendFile(file: ConsoleFile, accepted: string | undefined): FileAnswer & { readonly status: 200 } {
  const wanted = acceptedEncoding(accepted);
  const compressed = wanted === 'br' ? file.brotli : wanted === 'gzip' ? file.gzip : undefined;
  const cached = file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache';
  return {
    status: 200,
    headers: {
      'Content-Type': file.type,
      'Cache-Control': cached,
      'Content-Security-Policy': file.policy,
      Vary: 'Accept-Encoding',
      ...(compressed === undefined ? {} : { 'Content-Encoding': wanted ?? '' }),
    },
    body: compressed ?? file.body,
  };
}

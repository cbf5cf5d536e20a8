/** The console: one page, and the files that it is made of. */
import { z } from 'zod';
import { AppError } from '../../errors/app-error.ts';
import { acceptedEncoding } from '../accepted-encoding.ts';
import { type ConsoleFile, type ConsoleFiles, pagePolicy } from '../console-files.ts';
import { missingConsolePage } from '../docs-pages.ts';
import { type Answer, type Route, route } from '../route.ts';

const FilePath = z.object({ file: z.string() });
const headers = z.object({ 'accept-encoding': z.string().optional() });

function leadToConsole(path: string, operation: string): Route {
  return route({
    operation,
    method: 'GET',
    path,
    tag: 'console',
    summary: 'Leads to the console',
    auth: 'open',
    responses: { 302: 'empty' },
    handle: () => ({ status: 302, headers: { Location: '/ui/' } }),
  });
}

/** @param files undefined: this server has no console */
export function consoleRoutes(files?: ConsoleFiles): Route[] {
  return [
    leadToConsole('/', 'go_to_console'),
    route({
      operation: 'get_console',
      method: 'GET',
      path: '/ui/',
      tag: 'console',
      summary: 'The console',
      auth: 'open',
      headers,
      responses: { 200: { content: 'text/html' }, 503: { content: 'text/html' } },
      handle: async (call) => showPage(files, call.headers['accept-encoding']),
    }),
    leadToConsole('/ui', 'open_console'), // behind /ui/, which it would take too
    route({
      operation: 'get_console_file',
      method: 'GET',
      path: '/ui/{+file}',
      tag: 'console',
      summary: 'A file of the console; any other address is one of its page',
      auth: 'open',
      params: FilePath,
      headers,
      responses: { 200: { content: '*/*' }, 503: { content: 'text/html' } },
      handle: async ({ params: { file }, headers: { 'accept-encoding': accepted } }) => {
        const found = await files?.file(file);
        if (found !== undefined) return sendFile(found, accepted);
        if (!file.startsWith('assets/')) return showPage(files, accepted);
        throw new AppError('not_found', 'the console has no such file; it may have been built anew');
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

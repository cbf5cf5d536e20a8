/** Pages for people. Swagger UI is served from its package, by name, so that no path can lead elsewhere. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { apiPage, errorsPage, initScript } from '../docs-pages.ts';
import { type Route, route } from '../route.ts';

const swaggerFiles = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
} as const;

function readSwaggerFile(name: keyof typeof swaggerFiles): Promise<Buffer> {
  const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  return readFile(join(folder, name));
}

interface Page {
  readonly operation: string;
  readonly path: string;
  readonly summary: string;
  /** Its media type, without the charset. */
  readonly content: string;
  readonly text: string;
}

function textRoute({ operation, path, summary, content, text }: Page): Route {
  return route({
    operation,
    method: 'GET',
    path,
    tag: 'docs',
    summary,
    auth: 'open',
    responses: { 200: { content } },
    handle: () => ({ status: 200, headers: { 'Content-Type': `${content}; charset=utf-8` }, body: text }),
  });
}

function swaggerRoute(name: keyof typeof swaggerFiles): Route {
  return route({
    operation: `get_${name.replaceAll(/[^a-z0-9]/g, '_')}`,
    method: 'GET',
    path: `/docs/${name}`,
    tag: 'docs',
    summary: `Part of the API page: ${name}`,
    auth: 'open',
    responses: { 200: { content: swaggerFiles[name] } },
    handle: async () => ({
      status: 200,
      headers: { 'Content-Type': swaggerFiles[name], 'Cache-Control': 'public, max-age=3600' },
      body: await readSwaggerFile(name),
    }),
  });
}

export function docsRoutes(): Route[] {
  return [
    textRoute({
      operation: 'get_api_page',
      path: '/docs',
      summary: 'The API for people',
      content: 'text/html',
      text: apiPage,
    }),
    textRoute({
      operation: 'get_errors_page',
      path: '/docs/errors',
      summary: 'Every error code and its meaning',
      content: 'text/html',
      text: errorsPage,
    }),
    textRoute({
      operation: 'get_api_page_script',
      path: '/docs/init.js',
      summary: 'Part of the API page: its start',
      content: 'text/javascript',
      text: initScript,
    }),
    ...(Object.keys(swaggerFiles) as (keyof typeof swaggerFiles)[]).map(swaggerRoute),
  ];
}

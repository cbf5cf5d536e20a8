/** The list of routes, from the declarations that are mounted. */
import { toDocumentedPath } from '../../src/api/documents/openapi.ts';
import type { Route } from '../../src/api/route.ts';
import { declaredRoutes } from './declared-routes.ts';
import { code, createPage, formatTable, type Page } from './page.ts';

function bodyOf({ body }: Route): string {
  switch (body.kind) {
    case 'json':
      return body.optional ? 'JSON, optional' : 'JSON';
    case 'definition':
      return 'definition, JSON or YAML';
    case 'raw':
      return 'JSON or a form';
    case 'stream':
      return 'any file';
    case 'none':
      return '';
  }
}

function toRow(route: Route) {
  return [
    code(`${route.method} ${toDocumentedPath(route.path)}`),
    route.summary,
    bodyOf(route),
    route.scope === null ? 'open' : code(route.scope),
    Object.keys(route.responses).join(', '),
  ];
}

function formatGroup(tag: string, routes: readonly Route[]): string {
  return `## ${tag}\n\n${formatTable(['Route', 'Does', 'Body', 'Scope', 'Answers'], routes.map(toRow))}`;
}

const introduction = `
The OpenAPI 3.1 document describes every body, parameter and error. A running server answers it at
\`/v1/openapi.json\` and shows it in a browser at \`/docs\`. Editors find the JSON Schema of a pipeline definition at
\`/v1/schemas/pipeline.json\`.

Send a key as \`Authorization: Bearer <key>\` or \`X-API-Key: <key>\`. \`X-Project-ID\` selects one of its projects; without
it, the request uses the first one. The scope \`admin\` includes all scopes except \`operator\`.

Lists answer \`{items, next_cursor}\`; \`GET /skills\` answers a bare array. \`limit\` is at most 200. Times are RFC 3339,
amounts are USD. Every answer carries \`X-Request-Id\`. All error codes: [errors](errors.md).
`;

export function createApiPage(): Page {
  const routes = declaredRoutes();
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  const groups = tags.map((tag) =>
    formatGroup(
      tag,
      routes.filter((route) => route.tag === tag),
    ),
  );
  return createPage('docs/reference/api.md', {
    title: 'HTTP API',
    source: 'src/api/routes/',
    sections: [introduction, ...groups],
  });
}

import { errorCodes } from '@capstan/core/contracts/errors';
import Ajv from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';

interface Operation {
  readonly operationId: string;
  readonly security: unknown[];
  readonly parameters?: { name: string; in: string; required?: boolean }[];
  readonly responses: Record<string, unknown>;
}

interface OpenApi {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { schemas: Record<string, unknown> };
}

let api: TestApi;
let document: OpenApi;
beforeAll(async () => {
  api = await startTestApi();
  document = (await (
    await api.call('/v1/openapi.json', { headers: { authorization: '' } })
  ).json()) as OpenApi;
});
afterAll(() => api.close());

function operations() {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
}

describe('the OpenAPI document', () => {
  test('lists every route of the API', () => {
    expect(
      operations()
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
    ).toEqual(
      [
        'DELETE /v1/aliases/{name}',
        'GET /v1/aliases',
        'PUT /v1/aliases/{name}',
        'DELETE /v1/cache',
        'GET /v1/cache/summary',
        'DELETE /v1/pipelines/{name}/aliases/{alias}',
        'GET /v1/runs/count',
        'GET /v1/runs/export',
        'POST /v1/runs/bulk/cancel',
        'POST /v1/runs/bulk/rerun',
        'DELETE /v1/capabilities/{name}',
        'DELETE /v1/keys/{id}',
        'DELETE /v1/projects/{id}',
        'GET /v1/projects/{id}/erasure',
        'DELETE /v1/media/{job_id}/{file}',
        'GET /livez',
        'POST /v1/media/{job_id}/{file}/upload',
        'POST /v1/uploads/{token}',
        'POST /v1/callbacks/{token}',
        'POST /v1/events/{name}',
        'POST /v1/validate',
        'PUT /v1/projects/{id}/settings',
        'PUT /v1/secrets/{name}',
        'PUT /v1/uploads/{token}',
        'GET /v1/schedules/{id}/history',
        'POST /v1/schedules/{id}/backfills',
        'GET /v1/schedules/{id}/backfills',
        'GET /v1/schedules/{id}/backfills/{backfill}',
        'POST /v1/schedules/{id}/backfills/{backfill}/cancel',
        'DELETE /v1/hooks/{name}',
        'GET /v1/hooks',
        'GET /v1/hooks/{name}',
        'GET /v1/hooks/{name}/deliveries',
        'GET /v1/hooks/{name}/deliveries/{delivery}',
        'POST /v1/hooks',
        'POST /v1/hooks/{name}',
        'POST /v1/hooks/{name}/deliveries/{delivery}/replay',
        'POST /v1/hooks/{name}/rotate',
        'PUT /v1/hooks/{name}',
        'DELETE /v1/webhooks/{id}',
        'PUT /v1/webhooks/{id}',
        'GET /v1/webhooks',
        'GET /v1/webhooks/{id}/deliveries',
        'POST /v1/webhooks',
        'POST /v1/webhooks/{id}/test',
        'GET /skills/{id}/worth',
        'GET /v1/costs/series',
        'GET /v1/decisions',
        'GET /v1/runs/health',
        'GET /v1/runs/summary',
        'GET /v1/runs/{id}/graph',
        'GET /v1/runs/{id}/timeline',
        'GET /v1/stream',
        'POST /v1/capabilities/{name}/check',
        'DELETE /v1/secrets/{name}',
        'DELETE /v1/session',
        'GET /v1/secrets',
        'GET /v1/session',
        'POST /v1/login-links',
        'GET /readyz',
        'GET /v1/cache',
        'GET /v1/calls',
        'GET /v1/calls/health',
        'GET /v1/calls/summary',
        'GET /v1/calls/{id}',
        'GET /v1/calls/{id}/content',
        'GET /v1/capabilities',
        'GET /v1/budgets',
        'GET /v1/capabilities/{name}',
        'GET /v1/costs',
        'GET /v1/ledger',
        'PUT /v1/budgets',
        'GET /v1/budgets/scoped',
        'DELETE /v1/users/{user}',
        'PUT /v1/budgets/scoped/{scope}',
        'DELETE /v1/budgets/scoped/{scope}',
        'GET /v1/decisions/{id}',
        'GET /v1/escalations/{id}',
        'GET /v1/jobs/{id}',
        'GET /v1/keys',
        'GET /v1/limits',
        'GET /v1/media/{job_id}/{file}',
        'GET /v1/openapi.json',
        'GET /v1/pipelines',
        'GET /v1/pipelines/{name}',
        'GET /v1/pipelines/{name}/aliases',
        'GET /v1/pipelines/{name}/graph.svg',
        'PUT /v1/pipelines/{name}/aliases/{alias}',
        'GET /v1/pipelines/{name}/versions',
        'GET /v1/pipelines/{name}/versions/{version}',
        'GET /v1/pipelines/{name}/versions/{version}/graph.svg',
        'GET /v1/projects',
        'GET /v1/hosts',
        'GET /v1/publishers',
        'GET /v1/reviews',
        'GET /v1/reviews/{id}',
        'POST /v1/reviews/{id}/claim',
        'POST /v1/reviews/{id}/decision',
        'POST /v1/reviews/{id}/release',
        'GET /skills',
        'POST /advise',
        'POST /execute',
        'POST /mcp',
        'DELETE /openai/v1/responses/{id}',
        'GET /anthropic/v1/models',
        'GET /anthropic/v1/models/{model}',
        'GET /openai/v1/responses/{id}',
        'POST /anthropic/v1/messages/count_tokens',
        'POST /openai/v1/responses',
        'POST /openai/v1/responses/{id}/cancel',
        'POST /anthropic/v1/messages',
        'POST /openai/v1/chat/completions',
        'POST /openai/v1/embeddings',
        'GET /openai/v1/models',
        'GET /openai/v1/models/{model}',
        'POST /skills',
        'GET /skills/{id}',
        'PATCH /skills/{id}',
        'POST /skills/{id}/retire',
        'GET /skills/{id}/uses',
        'GET /v1/audit',
        'GET /v1/runs',
        'GET /v1/runs/{id}',
        'GET /v1/runs/{id}/events',
        'GET /v1/runs/{id}/steps/{step}',
        'GET /v1/runs/{id}/steps/{step}/items',
        'DELETE /v1/schedules/{id}',
        'GET /v1/schedules',
        'GET /v1/schedules/{id}',
        'POST /v1/schedules',
        'POST /v1/schedules/{id}/pause',
        'POST /v1/schedules/{id}/resume',
        'POST /v1/schedules/{id}/trigger',
        'POST /v1/session',
        'DELETE /v1/sessions/{id}',
        'GET /v1/sessions',
        'GET /v1/sessions/oidc',
        'GET /v1/sessions/oidc/callback',
        'GET /v1/sign-in',
        'POST /v1/sessions/oidc/logout',
        'POST /v1/sessions/revoke',
        'PUT /v1/publishers/{name}',
        'PUT /v1/schedules/{id}',
        'GET /v1/schemas/fleet.json',
        'GET /v1/schemas/pipeline.json',
        'GET /v1/schemas/project.json',
        'HEAD /v1/media/{job_id}/{file}',
        'POST /v1/capabilities',
        'POST /v1/capabilities/{name}/exec',
        'POST /v1/capabilities/{name}/drain',
        'POST /v1/capabilities/{name}/heartbeat',
        'POST /v1/capabilities/{name}/undrain',
        'POST /v1/capabilities/{name}/warm',
        'POST /v1/hosts/{name}/drain',
        'POST /v1/hosts/{name}/undrain',
        'POST /v1/hosts/{name}/warm',
        'PUT /v1/capabilities/{name}/sharing',
        'POST /v1/escalations',
        'POST /v1/jobs',
        'POST /v1/keys',
        'POST /v1/keys/{id}/rotate',
        'POST /v1/pipelines',
        'POST /v1/pipelines/validate',
        'POST /v1/plan',
        'POST /v1/pipelines/{name}/plan',
        'POST /v1/projects',
        'POST /v1/route',
        'POST /v1/runs',
        'POST /v1/runs/bulk',
        'POST /v1/runs/bulk/raise',
        'POST /v1/runs/{id}/budget',
        'POST /v1/runs/{id}/cancel',
        'POST /v1/runs/{id}/pause',
        'POST /v1/runs/{id}/rerun',
        'POST /v1/runs/{id}/resume',
        'PUT /v1/media/{job_id}/{file}',
      ].sort(),
    );
  });

  test('describes what is served: open routes answer without a key, the others 401', async () => {
    for (const { path, method, operation } of operations()) {
      const url = path.replace(/\{\w+\}/g, 'x');
      const { status } = await api.call(url, { method, headers: { authorization: '' } });
      const isOpen = operation.security.length === 0;
      expect([method, path, status === 401]).toEqual([method, path, !isOpen]);
      if (isOpen && method === 'get') expect(status).toBe(200);
    }
  });

  test('names every parameter of a path, and has one name for each operation', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[a-z]+(_[a-z0-9]+)*$/.test(id))).toEqual([]);
    expect(ids).toEqual(expect.arrayContaining(['start_run', 'get_step', 'exec_capability', 'list_runs']));
    for (const { path, operation } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
      expect(declared.map(({ name }) => name)).toEqual(inPath);
      expect(declared.every(({ required }) => required === true)).toBe(true);
    }
  });

  test('has no boolean as a schema of items: a list of fixed length bounds its length', () => {
    const withBoolean: string[] = [];
    const walk = (value: unknown, at: string): void => {
      if (typeof value !== 'object' || value === null) return;
      if ('items' in value && typeof value.items === 'boolean') withBoolean.push(at);
      for (const [key, child] of Object.entries(value)) walk(child, `${at}/${key}`);
    };
    walk(document, '');
    expect(withBoolean).toEqual([]);
    expect(JSON.stringify(document.components.schemas.CostSeries)).toContain('"minItems":4,"maxItems":4');
  });

  test('refers only to schemas that it holds', () => {
    expect(document.openapi).toBe('3.1.0');
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
    expect(references.length).toBeGreaterThan(20);
    for (const [, name] of references) expect(Object.keys(document.components.schemas)).toContain(name);
  });

  test('answers a problem for every error, and an error of their form below the paths of other protocols', () => {
    for (const { operation, path } of operations()) {
      const errors = Object.entries(operation.responses).filter(
        ([status]) => Number(status) >= 400 && status !== '503',
      );
      const [, protocol = ''] = /^\/(openai|anthropic)\//.exec(path) ?? [];
      const forms: Record<string, string> = { openai: 'OpenAiError', anthropic: 'AnthropicError' };
      const form = forms[protocol];
      expect(JSON.stringify(errors)).toContain(
        form === undefined ? 'application/problem+json' : `#/components/schemas/${form}`,
      );
    }
  });
});

test('the pipeline schema accepts a definition and refuses an unknown key', async () => {
  const answer = await api.call('/v1/schemas/pipeline.json', { headers: { authorization: '' } });
  const validate = new Ajv.Ajv2020({ strict: false }).compile((await answer.json()) as object);
  const definition = {
    pipeline: 'p',
    version: '1',
    steps: [{ id: 'a', capability: 'b', input: { x: '{{ job.x }}' } }],
  };
  expect(validate(definition)).toBe(true);
  expect(validate({ ...definition, stpes: [] })).toBe(false);
});

describe('the pages for people', () => {
  test('load nothing but what is served here, and run no inline script', async () => {
    const page = await (await api.call('/docs')).text();
    const sources = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source ?? '');
    expect(sources.length).toBeGreaterThan(3);
    for (const source of sources) {
      expect(source).toMatch(/^\/docs\//);
      expect((await api.call(source, { headers: { authorization: '' } })).status).toBe(200);
    }
    expect(page).not.toMatch(/<script>|<style>| style="| on\w+="/);
    expect(await (await api.call('/docs/init.js')).text()).toContain('validatorUrl: null');
  });

  test('explain every error code where a problem points to', async () => {
    const page = await (await api.call('/docs/errors')).text();
    for (const code of errorCodes) expect(page).toContain(`id="${code}"`);
  });
});

describe('the document for generators of clients', () => {
  test('for generators has no property of the type null alone, which they cannot name', async () => {
    const answer = await api.call('/v1/openapi.json?for=generators');
    const alone: string[] = [];
    JSON.stringify(await answer.json(), (key, value) => {
      const { type, anyOf, oneOf } = (value ?? {}) as { type?: unknown; anyOf?: unknown; oneOf?: unknown };
      if (type === 'null' && anyOf === undefined && oneOf === undefined && !/^\d+$/.test(key))
        alone.push(key);
      return value;
    });
    expect(alone).toEqual([]);
  });

  test('has the same operations, one type for each schema, and no content but JSON and bytes', async () => {
    const answer = await api.call('/v1/openapi.json?for=generators');
    const simple = (await answer.json()) as OpenApi;
    const idsOf = ({ paths }: OpenApi) =>
      Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
    expect(idsOf(simple)).toEqual(idsOf(document));

    const found = { rules: 0, mixedTypes: 0, otherContent: 0 };
    const walk = (node: unknown, isNames: boolean): void => {
      if (typeof node !== 'object' || node === null) return;
      for (const [key, value] of Object.entries(node)) {
        if (!isNames && ['not', 'if', 'propertyNames'].includes(key)) found.rules++;
        if (
          !isNames &&
          key === 'type' &&
          Array.isArray(value) &&
          value.filter((one) => one !== 'null').length > 1
        )
          found.mixedTypes++;
        if (/^[a-z*]+\/\S+$/.test(key) && !/[/+]json$|octet-stream$/.test(key)) found.otherContent++;
        walk(value, !isNames && ['properties', 'schemas', '$defs', 'example', 'examples'].includes(key));
      }
    };
    walk(document, false);
    expect(Math.min(...Object.values(found))).toBeGreaterThan(0);
    Object.assign(found, { rules: 0, mixedTypes: 0, otherContent: 0 });
    walk(simple, false);
    expect(found).toEqual({ rules: 0, mixedTypes: 0, otherContent: 0 });
  });
});

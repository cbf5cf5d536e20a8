/**
 * The OpenAPI document against what is served: requests that are made from it, for every operation; of `SEED`, and more of
 * them by `RUNS`.
 */

import type { Problem } from '@capstan/core/contracts/problem';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { isLong } from '../support/long.ts';
import { runs, seed } from '../support/runs.ts';
import { type Answer, createJudge, createValidators, findRefusal } from './openapi/answers.ts';
import { createResolve, listOperations, type Operation, readDocument } from './openapi/document.ts';
import { createRequests, type GeneratedRequest } from './openapi/requests.ts';
import { createSchemaValues } from './openapi/schema-values.ts';
import { createThings, type Things } from './openapi/things.ts';
import { listViolations } from './openapi/violations.ts';

const requestsEach = runs(isLong ? 4 : 1);
const atOnce = 8;
const timeout = 30_000 + 500 * requestsEach;

const document = readDocument();
/** A stream does not end by itself; test/api/stream.test.ts follows it. */
const operations = listOperations(document).filter(({ path }) => path !== '/v1/stream');
const validatorOf = createValidators(document);
const judge = createJudge(validatorOf);

/** Rules that no schema can state: other objects, and rules of another language. The document has them in words. */
const saidInWords: readonly RegExp[] = [
  /^\S+ \/query\/cursor invalid_cursor$/,
  /^\/v1\/costs\S* \/query\/(period|from|to) custom$/,
  /^\S+ \/(endpoint|spec_url|health_url|url) invalid_address$/,
  /^\S+ \/cost_model\/(worst_case|expected) invalid_cost$/,
  /^\S+ \/affinity affinity_invalid$/,
  /^\S+ \/name other_name$/,
  /^\S+ \/(from|until) invalid_value$/,
  /^\S+ \/timezone (invalid_value|timezone_unknown)$/,
  /^\/v1\/publishers\/\{name\} \/projects invalid_value$/,
  /^\/v1\/runs\/\{id\}\/rerun \/from\/\* unknown_step$/,
  /^\/v1\/hooks\S* \/(pipeline|version|alias) \w+_unknown$/,
  /^\/v1\/hooks\S* \/(job|filter|key)\S* \w+$/,
  /^\/v1\/hooks\S* \/secret \w+$/,
  /^\/v1\/schedules\S* \/(pipeline|version|alias) \w+_unknown$/,
  /^\/v1\/schedules\S* \/(cron cron_invalid|catch_up catch_up_invalid)$/,
  /^\/v1\/schedules\S* \/job\S* expression_unused$/,
  /^\/skills\S* \S+ hidden_character$/,
];

let api: TestApi;
let things: Things;
let requests: ReturnType<typeof createRequests>;
const seen = new Map<string, number>();
beforeAll(async () => {
  api = await startTestApi();
  things = await createThings(api);
  requests = createRequests({
    valuesOf: createSchemaValues({
      document,
      allows: (schema, value) => validatorOf(schema)(value),
      known: things.fields,
    }),
    knownPaths: things.paths,
  });
});
afterAll(async () => {
  await things.close();
  await api.close();
  if (process.env.RUNS !== undefined) console.info(Object.fromEntries([...seen].sort()));
});

async function send({ url, method, headers, body }: GeneratedRequest): Promise<Answer> {
  const answer = await api.call(url, { method, headers, body });
  return {
    status: answer.status,
    type: answer.headers.get('content-type')?.split(';')[0] ?? '',
    text: await answer.text(),
  };
}

function show({ url, method, headers, body }: GeneratedRequest): string {
  return `${method} ${url.slice(0, 300)} ${JSON.stringify(headers)} ${String(body ?? '').slice(0, 600)}`;
}

async function findFault(operation: Operation, request: GeneratedRequest): Promise<string[]> {
  const answer = await send(request);
  const count = `${answer.status}`;
  seen.set(count, (seen.get(count) ?? 0) + 1);
  const refusal = findRefusal(answer);
  const isKnown = refusal !== null && saidInWords.some((rule) => rule.test(`${operation.path} ${refusal}`));
  const fault = judge(operation, answer) ?? (refusal === null || isKnown ? null : `refused: ${refusal}`);
  return fault === null ? [] : [`${fault}\n  ${show(request)}\n  ${answer.text.slice(0, 400)}`];
}

test.each(operations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
  '%s answers as documented',
  { timeout },
  async (_, operation) => {
    const samples = fc.sample(requests(operation), { numRuns: requestsEach, seed });
    const faults: string[] = [];
    for (let at = 0; at < samples.length; at += atOnce) {
      const found = samples.slice(at, at + atOnce).map((sample) => findFault(operation, sample));
      faults.push(...(await Promise.all(found)).flat());
    }
    expect(faults).toEqual([]);
  },
);

test('a query that the document does not allow is refused there', async () => {
  const resolve = createResolve(document);
  const asked = operations.flatMap(({ method, path, parameters }) =>
    parameters
      .filter(({ in: place }) => place === 'query')
      .flatMap(({ name, schema }) => {
        const filled = path.replace(/\{(\w+)\}/g, (_, parameter) => things.paths(path, parameter)[0] ?? 'x');
        return listViolations(resolve(schema)).map((value) => ({ method, name, value, path: filled }));
      }),
  );
  expect(asked.length).toBeGreaterThan(80);
  for (const { method, name, value, path } of asked) {
    const query = new URLSearchParams({ [name]: value });
    const body = method === 'GET' ? undefined : { pipeline: 'p', version: '1', steps: [] };
    const answer = await api.call(`${path}?${query}`, { method, body });
    const { errors = [], error } = (await answer.json()) as Problem & { error?: { param: string } };
    // The body belongs to another route.
    const pointers = [...errors.map(({ pointer }) => pointer), `/${error?.param.replace('.', '/')}`];
    const inQuery = pointers.filter((pointer) => pointer.startsWith('/query/'));
    const told = [method, path, answer.status, [...new Set(inQuery)]];
    expect(told).toEqual([method, path, 422, [`/query/${name}`]]);
  }
});

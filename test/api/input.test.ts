import { Registration } from '@capstan/core/contracts/capability';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { json, Nothing, validateInput } from '../../src/api/input.ts';

function faultsOf(body: unknown, query: unknown = {}) {
  const schemas = {
    params: Nothing,
    query: z.object({ limit: z.coerce.number().default(1) }),
    headers: Nothing,
    body: json(Registration),
  };
  try {
    validateInput(schemas, { params: {}, query, headers: {}, body });
    return {};
  } catch (thrown) {
    const { message, errors } = thrown as { message: string; errors: readonly ProblemItem[] };
    return { message, errors: Object.fromEntries(errors.map((one) => [one.pointer, one.message])) };
  }
}

test('a body without fields names those that are required', () => {
  const { message, errors = {} } = faultsOf({});
  expect(message).toBe('/name: is required, and 6 more');
  expect(errors).toMatchObject({
    '/spec_url': 'is required',
    '/cost_model': 'is required',
    '/tags': 'is required',
  });
});

test('values of another type, and others than are allowed, are named with what is allowed', () => {
  const cost_model = { type: 'gift', rate_usd: null };
  const found = faultsOf({ name: 3, tags: {}, max_concurrency: 'two', cost_model }, { limit: 'x' });
  expect(found.errors).toMatchObject({
    '/name': 'expected a string, found a number',
    '/tags': 'expected a list, found an object',
    '/max_concurrency': 'expected a number, found a string',
    '/cost_model/type': 'expected one of per_second, per_call, free',
    '/cost_model/rate_usd': 'expected a number, found nothing (null)',
    '/query/limit': 'expected a number, found a text',
  });
  expect(faultsOf(null).message).toBe('the body: expected an object, found nothing (null)');
});

import { expect, it } from 'vitest';
import {
  classifyFailure,
  type FailureClass,
  type FailureFacts,
} from '../../../src/core/ladder/classify-failure.ts';

const table: [FailureClass, FailureFacts[]][] = [
  [
    'transient',
    [
      { code: 'no_instance' },
      { code: 'overloaded' },
      { code: 'connect_failed' },
      { code: 'contact_lost' },
      { code: 'attempt_timeout' },
      { code: 'step_timeout' },
      { code: 'capability_failed', status: 500 },
      { code: 'response_invalid' },
      { code: 'budget_reserved' },
      { code: 'internal' },
      { code: 'input_rejected', status: 409 },
      { code: 'input_rejected', status: 422, is_listed: true },
    ],
  ],
  [
    'real',
    [
      { code: 'input_invalid' },
      { code: 'input_rejected' },
      { code: 'input_rejected', status: 422 },
      { code: 'input_rejected', status: 404 },
      { code: 'input_rejected', status: 400, from_model: true },
      { code: 'output_invalid' },
      { code: 'output_too_large' },
      { code: 'expression_unresolved' },
    ],
  ],
  ['malformed', [{ code: 'output_invalid', from_model: true }]],
  [
    'config',
    [
      { code: 'input_rejected', status: 401, from_model: true },
      { code: 'input_rejected', status: 403, from_model: true },
      { code: 'input_rejected', status: 404, from_model: true },
      { code: 'delivery_unknown' },
    ],
  ],
  ['budget', [{ code: 'budget_exhausted' }, { code: 'ceiling_too_low' }]],
];

it.each(table.flatMap(([is, all]) => all.map((facts) => [is, facts] as const)))('%s is %j', (is, facts) => {
  expect(classifyFailure(facts)).toBe(is);
});

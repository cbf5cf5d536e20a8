import { expect, it } from 'vitest';
import { toHttpFailure } from '../../src/call/outcome.ts';
import {
  classifyFailure,
  classOfCorrection,
  classOfModelCall,
  type FailureClass,
  type FailureFacts,
} from '../../src/ladder/classify-failure.ts';

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
      { code: 'capability_failed', status: 409 },
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
      { code: 'unauthenticated' },
      { code: 'forbidden' },
      { code: 'not_found' },
    ],
  ],
  ['budget', [{ code: 'budget_exhausted' }, { code: 'ceiling_too_low' }]],
];

it.each(table.flatMap(([is, all]) => all.map((facts) => [is, facts] as const)))('%s is %j', (is, facts) => {
  expect(classifyFailure(facts)).toBe(is);
});

it.each([
  ['config', 'capability_failed', 502, 'provider_config'],
  ['malformed', 'input_rejected', 422, 'model_answer_invalid'],
  ['transient', 'capability_failed', 502, 'provider_unavailable'],
  ['real', 'input_rejected', 422, 'provider_refused'],
  ['real', 'input_rejected', 422, 'constructor'],
  ['config', 'input_rejected', 404, undefined],
] as const)('a call of a model is %s when it ends as %s with %i and %s', (is, code, status, errorCode) => {
  const said = { status, message: 'provider_config: it says something else' };
  const error = toHttpFailure(code, errorCode === undefined ? said : { ...said, errorCode });
  expect(classOfModelCall(error)).toBe(is);
});

it.each([
  ['real', { code: 'input_rejected', message: 'HTTP 422: no', status: 422 }],
  ['transient', { code: 'capability_failed', message: 'HTTP 409: later', status: 409 }],
  ['transient', { code: 'step_timeout', message: 'not done' }],
  ['config', { code: 'delivery_unknown', message: 'lost' }],
  ['budget', { code: 'budget_exhausted', message: 'no money' }],
] as const)('a correction is retried where only time could have helped: %s is %j', (is, error) => {
  expect(classOfCorrection(error)).toBe(is);
});

import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import {
  deliveryIdOf,
  findHandshake,
  readForm,
  UnreadableForm,
  visibleHeaders,
} from '../../src/hooks/received.ts';

const readJson = (text: string): Json => JSON.parse(text) as Json;

describe('a form', () => {
  test.each([
    ['command=%2Fcut&text=a+b', { command: '/cut', text: 'a b' }],
    ['a=1&a=2&b=', { a: ['1', '2'], b: '' }],
    ['payload=%7B%22type%22%3A%22block_actions%22%7D', { type: 'block_actions' }],
    ['payload=%7B%7D&other=1', { payload: '{}', other: '1' }],
    ['', {}],
  ])('%s', (text, value) => {
    expect(readForm(text, readJson)).toEqual(value);
  });

  test('has no field that is named like a part of JavaScript, and a bounded number of them', () => {
    expect(() => readForm('__proto__=1', readJson)).toThrow(UnreadableForm);
    expect(() => readForm('a=1&'.repeat(1_001), readJson)).toThrow('more than 1000 fields');
  });
});

test('templates and the log see no secret of a request, and no place of the installation', () => {
  const headers = {
    'x-github-event': 'push',
    'content-type': 'application/json',
    authorization: 'Bearer x',
    cookie: 'a=b',
    'x-hub-signature-256': 'sha256=x',
    'x-gitlab-token': 'x',
    'x-api-key': 'x',
    'x-apikey': 'x',
    'proxy-authorization': 'x',
    'x-forwarded-for': '10.0.0.1',
    via: '1.1 inside',
    'set-cookie': ['x'],
  };
  expect(visibleHeaders(headers)).toEqual({ 'x-github-event': 'push', 'content-type': 'application/json' });
});

test.each([
  ['github', { 'x-github-delivery': 'd1' }, {}, 'd1'],
  ['github', {}, {}, null],
  ['standard', { 'webhook-id': 'msg_1' }, {}, 'msg_1'],
  ['standard', { 'svix-id': 'msg_2' }, {}, 'msg_2'],
  ['slack', { 'x-slack-signature': 'v0=a' }, { event_id: 'Ev1' }, 'Ev1'],
  ['slack', { 'x-slack-signature': 'v0=a' }, { trigger_id: '12.3' }, '12.3'],
  ['slack', { 'x-slack-signature': 'v0=a' }, { text: '' }, 'v0=a'],
  ['slack', { 'x-slack-signature': 'v0=a' }, [1], 'v0=a'],
  ['bearer', { 'idempotency-key': 'k' }, {}, 'k'],
  ['bearer', {}, { event_id: 'Ev1' }, null],
] as const)('the id of a delivery of %s with %j and %j is %s', (signature, headers, body, id) => {
  expect(deliveryIdOf(signature, { headers, body })).toBe(id);
});

test.each([
  ['github', { 'x-github-event': 'ping' }, {}, { kind: 'ping' }],
  ['github', { 'x-github-event': 'push' }, {}, null],
  ['slack', {}, { type: 'url_verification', challenge: 'c' }, { kind: 'challenge', challenge: 'c' }],
  ['slack', {}, { type: 'url_verification', challenge: 7 }, null],
  ['bearer', { 'x-github-event': 'ping' }, { type: 'url_verification', challenge: 'c' }, null],
] as const)('a check of the address by %s with %j and %j is %j', (signature, headers, body, expected) => {
  expect(findHandshake(signature, { headers, body })).toEqual(expected);
});

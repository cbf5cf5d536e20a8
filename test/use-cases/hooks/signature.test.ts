import { createHmac } from 'node:crypto';
import type { HookSignature } from '@capstan/core/contracts/hook';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  findSecretFault,
  findSignatureFault,
  type SignedRequest,
} from '../../../src/use-cases/hooks/signature.ts';

/** The examples that the senders publish. */
const published: readonly (readonly [string, HookSignature, string, number, SignedRequest])[] = [
  [
    'GitHub',
    'github',
    "It's a Secret to Everybody",
    0,
    {
      headers: {
        'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      },
      bytes: Buffer.from('Hello, World!'),
    },
  ],
  [
    'Standard Webhooks',
    'standard',
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    1_614_265_330,
    {
      headers: {
        'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        'webhook-timestamp': '1614265330',
        'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      },
      bytes: Buffer.from('{"test": 2432232314}'),
    },
  ],
  [
    'Slack',
    'slack',
    '8f742231b10e8888abcd99yyyzzz85a5',
    1_531_420_618,
    {
      headers: {
        'x-slack-request-timestamp': '1531420618',
        'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
      },
      bytes: Buffer.from(
        'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
      ),
    },
  ],
];

test.each(published)('accepts the example of %s', (_, signature, secret, seconds, request) => {
  expect(findSignatureFault(signature, request, { secrets: [secret], now: seconds * 1_000 })).toBeNull();
});

test.each(published)(
  'refuses the example of %s with another secret',
  (_, signature, secret, seconds, request) => {
    const other = `${secret.slice(0, -4)}AAAA`;
    const fault = findSignatureFault(signature, request, { secrets: [other], now: seconds * 1_000 });
    expect(fault).toContain('the signature does not match');
    expect(fault).not.toContain(secret);
  },
);

/** Signs as the sender of each form does. */
function sign(
  signature: HookSignature,
  secret: string,
  bytes: Buffer,
  seconds: number | string,
): SignedRequest {
  const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).update(bytes);
  const time = String(seconds);
  const headers: Record<HookSignature, Record<string, string>> = {
    github: { 'x-hub-signature-256': `sha256=${mac(secret, '').digest('hex')}` },
    standard: {
      'webhook-id': 'msg_1',
      'webhook-timestamp': time,
      'webhook-signature': `v1a,x v1,${mac(Buffer.from(secret, 'base64'), `msg_1.${time}.`).digest('base64')}`,
    },
    slack: {
      'x-slack-request-timestamp': time,
      'x-slack-signature': `v0=${mac(secret, `v0:${time}:`).digest('hex')}`,
    },
    bearer: { authorization: `Bearer ${secret}` },
  };
  return { headers: headers[signature], bytes };
}

const signatures: readonly HookSignature[] = ['github', 'standard', 'slack', 'bearer'];
const secrets = fc
  .uint8Array({ minLength: 18, maxLength: 60 })
  .map((bytes) => Buffer.from(bytes).toString('base64'));
const bodies = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
const moments = fc.integer({ min: 1_000_000, max: 4_000_000_000 });

describe.each(signatures)('%s', (signature) => {
  test('accepts each of two secrets, and no third', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(secrets, { minLength: 3, maxLength: 3 }),
        bodies,
        moments,
        (three, bytes, at) => {
          const [one = '', two = '', third = ''] = three;
          const proof = { secrets: [one, two], now: at * 1_000 };
          const faultOf = (secret: string) =>
            findSignatureFault(signature, sign(signature, secret, bytes, at), proof);
          expect([faultOf(one), faultOf(two)]).toEqual([null, null]);
          expect(faultOf(third)).toEqual(expect.any(String));
        },
      ),
      { numRuns: 50 },
    );
  });

  test('refuses a request without its headers, or with one of them twice', () => {
    const { headers, bytes } = sign(
      signature,
      'c2VjcmV0LXNlY3JldC1zZWNyZXQ=',
      Buffer.from('{}'),
      1_700_000_000,
    );
    const proof = { secrets: ['c2VjcmV0LXNlY3JldC1zZWNyZXQ='], now: 1_700_000_000_000 };
    for (const name of Object.keys(headers)) {
      const without = { ...headers, [name]: undefined };
      expect(findSignatureFault(signature, { headers: without, bytes }, proof)).toEqual(expect.any(String));
      const twice = { ...headers, [name]: [String(headers[name]), String(headers[name])] };
      expect(findSignatureFault(signature, { headers: twice, bytes }, proof)).toEqual(expect.any(String));
    }
  });
});

describe.each(['github', 'standard', 'slack'] as const)('%s', (signature) => {
  test('refuses a body of which one byte changed', () => {
    fc.assert(
      fc.property(secrets, bodies, fc.nat(), moments, (secret, bytes, place, at) => {
        fc.pre(bytes.length > 0);
        const request = sign(signature, secret, bytes, at);
        const changed = Buffer.from(bytes);
        changed[place % bytes.length] = (changed[place % bytes.length] ?? 0) ^ 1;
        const fault = findSignatureFault(
          signature,
          { ...request, bytes: changed },
          { secrets: [secret], now: at * 1_000 },
        );
        expect(fault).toContain('does not match');
      }),
      { numRuns: 50 },
    );
  });
});

describe.each(['standard', 'slack'] as const)('%s', (signature) => {
  test.each([
    [-301, false],
    [-300, true],
    [0, true],
    [300, true],
    [301, false],
    [86_400, false],
  ])('judges a timestamp that is %i s old', (age, isTaken) => {
    const at = 1_700_000_000;
    const secret = 'c2VjcmV0LXNlY3JldC1zZWNyZXQ=';
    const request = sign(signature, secret, Buffer.from('{}'), at);
    const fault = findSignatureFault(signature, request, { secrets: [secret], now: (at + age) * 1_000 });
    expect(fault === null).toBe(isTaken);
  });

  test.each(['soon', '', '1e9', '-5', '9'.repeat(40)])('refuses the timestamp %j', (time) => {
    const secret = 'c2VjcmV0LXNlY3JldC1zZWNyZXQ=';
    const request = sign(signature, secret, Buffer.from('{}'), time);
    expect(findSignatureFault(signature, request, { secrets: [secret], now: 1e12 })).toEqual(
      expect.any(String),
    );
  });
});

test('a signature of Standard Webhooks needs a key in base64', () => {
  expect(findSecretFault('standard', 'whsec_not base64!')).toContain('whsec_');
  expect(findSecretFault('standard', 'whsec_c2hvcnQ=')).toContain('16 bytes');
  expect(findSecretFault('standard', 'c2VjcmV0LXNlY3JldC1zZWNyZXQ=')).toBeNull();
  expect(findSecretFault('github', 'not base64!')).toBeNull();
});

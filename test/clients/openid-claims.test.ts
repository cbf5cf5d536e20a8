import { expect, test } from 'vitest';
import { readPerson } from '../../src/clients/openid-claims.ts';

test.each([
  [true, 'anna@example.org'],
  ['true', 'anna@example.org'],
  [undefined, 'anna@example.org'],
  [false, null],
  ['false', null],
  ['False', null],
])('an address whose email_verified is %j is %j', (email_verified, email) => {
  expect(readPerson({ email: 'anna@example.org', email_verified }).email).toBe(email);
});

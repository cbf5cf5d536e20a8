/** What is sealed is opened by any of the keys, at its place alone. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSecretCipher, type SecretCipher } from '../../src/clients/secret-cipher.ts';

const [older, newer] = ['k1', 'k2'].map((id) => `${id}:${randomBytes(32).toString('base64')}`);
const cipherOf = (...keys: unknown[]) => createSecretCipher(keys.join(',')) as SecretCipher;
const body = Buffer.concat([Buffer.from('{"ok": true}\n'), Buffer.from([0xff, 0])]);

test('the body of an answer is opened after a rotation, and for its attempt alone', () => {
  const sealed = cipherOf(older).sealAnswer('att_1', body);
  expect(sealed.sealed.includes('ok')).toBe(false);
  expect(cipherOf(newer, older).openAnswer('att_1', sealed)).toEqual(body);
  expect(() => cipherOf(older).openAnswer('att_2', sealed)).toThrow(/"k1".*is another one here/);
  expect(() => cipherOf(newer).openAnswer('att_1', sealed)).toThrow(
    /the answer to att_1.*"k1".*there are k2/,
  );
});

test('an answer is no secret, whose key has another purpose', () => {
  const sealed = cipherOf(older).sealAnswer('', Buffer.from(JSON.stringify(['prj_1', 'token', 'a value'])));
  expect(() => cipherOf(older).open({ project_id: 'prj_1', name: 'token' }, sealed)).toThrow(/another one/);
});

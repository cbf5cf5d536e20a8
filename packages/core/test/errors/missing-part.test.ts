import { expect, it } from 'vitest';
import { isNotInstalled, MissingPartError } from '../../src/errors/start-errors.ts';

it('names the npm install that brings a part, in the version that belongs to this package', () => {
  const { message } = new MissingPartError('A capability in TypeScript', 'tsx');
  expect(message).toMatch(
    /^A capability in TypeScript needs the package tsx, which is not installed here: npm install tsx@\^\d+\.\d+\.\d+ brings it$/,
  );
});

it('distinguishes a missing package from one that fails', () => {
  expect(isNotInstalled(Object.assign(new Error('no such package'), { code: 'ERR_MODULE_NOT_FOUND' }))).toBe(
    true,
  );
  expect(isNotInstalled(new Error('it fails when it is loaded'))).toBe(false);
});

import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { faults } from '../../scripts/mutants/faults.ts';

test('each fault made by hand finds its text once in its file, and its tests', () => {
  const astray = faults.filter(({ file, find, tests }) => {
    const times = existsSync(file) ? readFileSync(file, 'utf8').split(find).length - 1 : 0;
    return times !== 1 || !tests.every((path) => existsSync(path));
  });
  expect(astray.map(({ name, file }) => `${name}: ${file}`)).toEqual([]);
});

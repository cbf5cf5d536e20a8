import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { benches } from '../../scripts/commands/benches.ts';
import { describeTests, type FaultTests, faults } from '../../scripts/commands/faults.ts';
import { findNamed, listNamed } from '../../scripts/commands/named.ts';
import { root } from '../docs/documents.ts';

describe('a table of commands', () => {
  const table = { engine: { says: 'measures steps' }, 'hot-path': { says: 'measures calls' } };

  test('lists each name with a line, in its order', () => {
    expect(listNamed(table)).toBe('  engine    measures steps\n  hot-path  measures calls');
  });

  test('finds an entry by its name', () => {
    expect(findNamed(table, 'hot-path')).toBe(table['hot-path']);
  });

  test.each([
    ['enigne', 'unknown name "enigne"; did you mean "engine"? There are engine, hot-path'],
    ['hotpath', 'unknown name "hotpath"; did you mean "hot-path"? There are engine, hot-path'],
    ['weather', 'unknown name "weather". There are engine, hot-path'],
    ['toString', 'unknown name "toString". There are engine, hot-path'],
    ['', 'unknown name "". There are engine, hot-path'],
  ])('refuses %j with the nearest name', (name, message) => {
    expect(() => findNamed(table, name)).toThrow(new Error(message));
  });
});

describe('plays of faults', () => {
  const tests: FaultTests = { says: '', files: ['a.test.ts'], size: { variable: 'KILLS', usual: '50' } };

  test.each([
    [[], '50'],
    [['5'], '5'],
    [['1,30'], '1,30'],
  ])('arguments %j give the size %s', (words, size) => {
    expect(describeTests(tests, words).environment).toEqual({ LONG: '1', KILLS: size });
  });

  test.each([[['many']], [['5', '6']], [['--times', '20']]])('arguments %j are refused', (words) => {
    expect(() => describeTests(tests, words)).toThrow(
      `${words.join(' ')}: at most one argument, a size such as 50`,
    );
  });

  test('name test files that exist', () => {
    const files = Object.values(faults).flatMap((entry) => ('files' in entry ? entry.files : []));
    expect(files.length).toBeGreaterThan(5);
    expect(files.filter((file) => !existsSync(`${root}${file}`))).toEqual([]);
  });
});

test('each bench has a description of its own', () => {
  const says = Object.values(benches).map((bench) => bench.says);
  expect(new Set(says).size).toBe(says.length);
});

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { checkClockClaims } from '../../scripts/structure/check-clock-claims.ts';
import { checkFolders, checkShards, checkTotals } from '../../scripts/structure/check-files.ts';
import { checkDeclarations, checkFunctionLength } from '../../scripts/structure/check-functions.ts';
import { checkLayers, checkOneWay } from '../../scripts/structure/check-layers.ts';
import { checkLocks } from '../../scripts/structure/check-locks.ts';
import { checkOwnerPackages } from '../../scripts/structure/check-owner-packages.ts';
import { checkTypeNames } from '../../scripts/structure/check-type-names.ts';
import { findCircles } from '../../scripts/structure/circles.ts';
import { compareWithExceptions } from '../../scripts/structure/exceptions.ts';
import { layers } from '../../scripts/structure/layers.ts';
import { checkCircles, describeHouse, type House, surveyHouse } from '../../scripts/structure/rooms.ts';
import { parseSource, readSourcesAt, type Source, type Violation } from '../../scripts/structure/source.ts';

function subjectsOf(
  check: (sources: readonly Source[]) => Violation[],
  files: Record<string, string>,
): string[] {
  return check(Object.entries(files).map(([file, text]) => parseSource(file, text))).map(
    ({ subject }) => subject,
  );
}

function linesOf(count: number): string {
  return Array.from({ length: count }, (_, index) => `  take(${index});`).join('\n');
}

describe('files', () => {
  const used = "import './small.ts';";
  const long = linesOf(40);

  test.each([
    [
      'a small file that its neighbour alone imports',
      { 'src/db/a.ts': used, 'src/db/small.ts': '' },
      ['src/db/small.ts'],
    ],
    ['nothing of a file of 40 lines', { 'src/db/a.ts': used, 'src/db/small.ts': `${long}\n` }, []],
    ['nothing of what two import', { 'src/db/a.ts': used, 'src/db/b.ts': used, 'src/db/small.ts': '' }, []],
    [
      'nothing of what is imported from elsewhere',
      { 'src/api/a.ts': "import '../db/small.ts';", 'src/db/small.ts': '' },
      [],
    ],
    ['nothing of a module that is not imported', { 'src/db/small.ts': '' }, []],
  ])('refuses %s', (_, files, subjects) => {
    expect(subjectsOf(checkShards, files as Record<string, string>)).toEqual(subjects);
  });

  test('refuses the sixteenth file of a folder', () => {
    const files = Array.from({ length: 16 }, (_, at) => [`src/db/f${at}.ts`, '']);
    expect(subjectsOf(checkFolders, Object.fromEntries(files))).toEqual(['src/db']);
    expect(subjectsOf(checkFolders, Object.fromEntries(files.slice(1)))).toEqual([]);
  });

  test('refuses more files or lines than a top folder may have, and a folder without a total', () => {
    const files = { 'src/db/run/a.ts': `${long}\n`, 'src/db/b.ts': '', 'src/worker.ts': '' };
    const beside = { src: { files: 1, lines: 0 } };
    const check = (files_: number, lines: number) => (sources: readonly Source[]) =>
      checkTotals(sources, { ...beside, 'src/db': { files: files_, lines } });
    expect(subjectsOf(check(2, 40), files)).toEqual([]);
    expect(subjectsOf(check(1, 40), files)).toEqual(['src/db']);
    expect(subjectsOf(check(2, 39), files)).toEqual(['src/db']);
    expect(subjectsOf((sources) => checkTotals(sources, beside), files)).toEqual(['src/db']);
  });
});

describe('layers', () => {
  test.each([
    [
      'an arrow back up',
      'packages/core/src/a.ts',
      "import { x } from './mock-run/x.ts';",
      'packages/core/src/mock-run/x.ts',
    ],
    ['a package that a layer may not use', 'packages/core/src/a.ts', "import { z } from 'zod';", 'zod'],
    ['a part of such a package', 'packages/core/src/a.ts', "import fs from 'node:fs/promises';", 'node:'],
    [
      'values where types are allowed',
      'src/use-cases/a.ts',
      "import { x } from '../config.ts';",
      'src/config.ts',
    ],
    [
      'a type of a forbidden layer',
      'src/db/a.ts',
      "import type { X } from '@capstan/core/x';",
      'packages/core/src/x.ts',
    ],
    ['a type named in place', 'src/db/a.ts', "let x: import('@capstan/core/x').X;", 'packages/core/src/x.ts'],
    ['an import at run time', 'src/db/a.ts', "await import('@capstan/core/x');", 'packages/core/src/x.ts'],
    ['what is handed on', 'src/db/a.ts', "export * from '@capstan/core/x';", 'packages/core/src/x.ts'],
    [
      'a file of another package by its path',
      'packages/wrap/src/a.ts',
      "import '../../core/src/x.ts';",
      'packages/core/src/x.ts',
    ],
    [
      'a file of the engine in a package',
      'packages/wrap/src/a.ts',
      "import '../../../src/db/x.ts';",
      'src/db/x.ts',
    ],
    ['a folder that the table does not know', 'src/new/a.ts', "import { z } from 'zod';", 'zod'],
  ])('refuses %s', (_, file, text, module) => {
    expect(subjectsOf(checkLayers, { [file]: text })).toEqual([`${file} -> ${module}`]);
  });

  test('takes what the row names', () => {
    const text =
      "import type { X } from '@capstan/core/contracts/x';\nimport { knex } from 'knex';\nimport './own.ts';";
    expect(subjectsOf(checkLayers, { 'src/db/a.ts': text })).toEqual([]);
  });

  test('lets a package import others by their names', () => {
    const text =
      "import '@capstan/core/x';\nimport '@capstan/capability';\nimport './kinds/own.ts';\nimport 'undici';";
    expect(subjectsOf(checkLayers, { 'packages/wrap/src/a.ts': text })).toEqual([]);
  });

  test('the table itself has no circle', () => {
    const open = new Map(
      Object.entries(layers).map(([name, row]) => [name, [...row.imports, ...(row.types ?? [])]]),
    );
    for (let progress = true; progress; ) {
      progress = false;
      for (const [name, targets] of open) {
        if (targets.some((target) => open.has(target))) continue;
        open.delete(name);
        progress = true;
      }
    }
    expect([...open.keys()]).toEqual([]);
  });

  test('folders of use cases that import one another in a circle are refused, a way through is not', () => {
    const files = {
      'src/use-cases/runs/a.ts': "import '../steps/b.ts';",
      'src/use-cases/steps/b.ts': "import '../money/c.ts';",
      'src/use-cases/money/c.ts': '',
    };
    expect(subjectsOf(checkOneWay, files)).toEqual([]);
    expect(
      subjectsOf(checkOneWay, { ...files, 'src/use-cases/money/c.ts': "import '../runs/a.ts';" }),
    ).toEqual([
      'src/use-cases: runs -> steps',
      'src/use-cases: steps -> money',
      'src/use-cases: money -> runs',
    ]);
  });
});

describe('functions', () => {
  test('41 lines are too long, 40 are not, and the function is named by its container', () => {
    const text = [
      `function fits() {\n${linesOf(38)}\n}`,
      `function tooLong() {\n${linesOf(39)}\n}`,
      `export const held = { arrow: () => {\n${linesOf(39)}\n} };`,
      `class Made { constructor() {\n${linesOf(39)}\n} }`,
    ].join('\n');
    expect(subjectsOf(checkFunctionLength, { 'src/a.ts': text })).toEqual([
      'src/a.ts tooLong',
      'src/a.ts arrow',
      'src/a.ts constructor',
    ]);
  });

  test('a function at the top of a file is a declaration, or has a declared type', () => {
    const text =
      'const arrow = () => 1;\nexport const old = function () {};\nconst typed: Rule = () => 1;\nfunction fine() { const inner = () => 1; }';
    expect(subjectsOf(checkDeclarations, { 'src/a.ts': text })).toEqual(['src/a.ts arrow', 'src/a.ts old']);
  });
});

test('a type name is declared once, exported or not', () => {
  expect(
    subjectsOf(checkTypeNames, {
      'src/a.ts':
        'export interface Turn {}\ninterface Own {}\nexport const Shape = z.object({});\nexport type Shape = 1;',
      'src/b.ts': "type Turn = 1;\nexport type { Own } from './a.ts';",
    }),
  ).toEqual(['Turn']);
});

describe('claims by the clock', () => {
  const found = (text: string) => subjectsOf(checkClockClaims, { 'test/a.test.ts': text }).length;

  test.each([
    ['a bound on a difference', 'expect(performance.now() - from).toBeLessThan(1_000);'],
    ['a bound on one in a call', 'expect(Math.abs(Date.now() - at)).toBeLessThanOrEqual(5);'],
    ['a bound on a constant', 'const took = performance.now() - from;\nexpect(took / 2).toBeLessThan(9);'],
    ['a bound with words', "expect(Date.now() - from, 'late').toBeLessThan(9);"],
    ['a short deadline', "await waitFor('it', () => done, 5_000);"],
    ['a second of vi.waitFor', 'await vi.waitFor(() => expect(done).toBe(true));'],
    ['a pause', 'await sleep(50);'],
    ['a pause by hand', 'await new Promise((resolve) => setTimeout(resolve, 20));'],
  ])('%s is refused', (_, text) => expect(found(text)).toBe(1));

  test.each([
    ['a least time', 'expect(performance.now() - from).toBeGreaterThan(1_000);'],
    ['processor time', 'const spentMs = countProcessorMs();\nexpect(spentMs()).toBeLessThan(1_000);'],
    ['a moment between two others', 'expect(at).toBeLessThanOrEqual(Date.now());'],
    ['a deadline of a minute', "await waitFor('it', () => done, 60_000);"],
    ['no deadline', "await waitFor('it', () => done);"],
    ['a turn of the loop', 'await new Promise((resolve) => setImmediate(resolve));'],
  ])('%s is not', (_, text) => expect(found(text)).toBe(0));

  test('a function is named by its test, or by the function that it is in', () => {
    const text = "test('waits', async () => { await sleep(1); });\nfunction slow() { return sleep(2); }";
    expect(subjectsOf(checkClockClaims, { 'test/a.test.ts': text })).toEqual([
      'test/a.test.ts waits',
      'test/a.test.ts slow',
    ]);
  });
});

test('an exception lets its subject pass, and fails when nothing needs it any more', () => {
  const violations = ['a', 'b'].map((subject) => ({ rule: 'parameters', subject, message: subject }));
  expect(compareWithExceptions(violations, { parameters: ['a', 'gone'], declarations: ['b'] })).toEqual({
    broken: [{ rule: 'parameters', subject: 'b', message: 'b' }],
    unneeded: ['parameters: gone', 'declarations: b'],
    needed: { parameters: ['a'], declarations: [] },
  });
  expect(compareWithExceptions(violations, { parameters: { a: 'why', b: 'why', gone: 'why' } })).toEqual({
    broken: [],
    unneeded: ['parameters: gone'],
    needed: { parameters: { a: 'why', b: 'why' } },
  });
});

describe('packages that the owner named', () => {
  const names = [...['activity', 'client', 'worker', 'workflow'].map((part) => `@temporalio/${part}`)];
  const product = ['@koa/router', 'koa', 'knex', 'pg', 'zod', ...names];
  const testing = '@temporalio/testing';
  const versions = (packages: readonly string[]) => Object.fromEntries(packages.map((name) => [name, '1']));
  const imports = (packages: readonly string[]) => packages.map((name) => `import '${name}';`).join('\n');
  const missing = (used: readonly string[], named: readonly string[]) =>
    subjectsOf(
      (sources) =>
        checkOwnerPackages(sources, { dependencies: versions(named), devDependencies: versions([testing]) }),
      { 'src/a.ts': imports(used), 'test/b.ts': imports([testing]) },
    );

  test('exist and are used', () => {
    expect(missing(product, product)).toEqual([]);
  });

  test('may neither leave package.json nor lie unused', () => {
    const others = product.filter((name) => name !== 'koa');
    expect([missing(product, others), missing(others, product)]).toEqual([['koa'], ['koa']]);
  });
});

/** The findings of the compiler about a text alone, without its imports. */
function codesOf(text: string): number[] {
  const file = parseSource('src/table.ts', text).tree;
  const options = { noResolve: true, noLib: true, target: ts.ScriptTarget.ESNext };
  const host: ts.CompilerHost = {
    ...ts.createCompilerHost(options),
    getSourceFile: (name) => (name === 'src/table.ts' ? file : undefined),
  };
  const program = ts.createProgram(['src/table.ts'], options, host);
  return program.getSemanticDiagnostics(program.getSourceFile('src/table.ts')).map(({ code }) => code);
}

const sameNameTwice = 1117;

describe('names of duties and of advisory locks', () => {
  test.each([
    ['src/use-cases/maintenance.ts', '  old_keyed_answers: ', '  old_cached_answers: '],
    ['src/use-cases/maintenance.ts', '  deliveries: ', '  capabilities: '],
    ['src/db/locks.ts', '  partitions: ', '  setup: '],
  ])('the compiler refuses a name that occurs twice in the table of %s', (file, own, taken) => {
    const text = readFileSync(file, 'utf8');
    expect(text.split(own)).toHaveLength(2);
    expect(codesOf(text)).not.toContain(sameNameTwice);
    expect(codesOf(text.replace(own, taken))).toContain(sameNameTwice);
  });

  test.each([
    ['a number of its own', "await trx.raw('select pg_advisory_xact_lock(?)', [7_236_150_445]);"],
    ['an attempt', 'const text = `select pg_try_advisory_lock(7236150445) as held`;'],
    ['a hash of a name', "await trx.raw(`select pg_advisory_xact_lock_shared(hashtext('wakes'))`);"],
  ])('an advisory lock by %s is allowed in the table alone', (_, text) => {
    const files = {
      'src/use-cases/setup.ts': text,
      'src/db/locks.ts': text,
    };
    expect(subjectsOf(checkLocks, files)).toEqual(['src/use-cases/setup.ts']);
  });
});

describe('rooms and arrows', () => {
  const files = {
    'src/config.ts': "import { x } from '@capstan/core/x';\n",
    'packages/core/src/x.ts': 'export const x = 1;\n',
    'packages/core/src/run/machine.ts':
      "import { x } from '../x.ts';\nimport type { Port } from '../../../../src/db/port.ts';\n",
    'src/db/port.ts': "import type { Plan } from '@capstan/core/run/plan';\nimport 'knex';\n",
    'src/db/sql/runs.sql': 'select 1;\n',
    'packages/core/src/run/plan.ts': "export type { Machine } from './machine.ts';\n",
    'packages/wrap/src/index.ts': "import { own } from './kinds/own.ts';\nimport '@capstan/core/x';\n",
    'packages/wrap/src/kinds/own.ts': '',
  };
  const sources = Object.entries(files).map(([file, text]) => parseSource(file, text));
  const house = surveyHouse(sources);
  const show = (rooms: House['rooms']) =>
    rooms.map(({ name, files, lines, arrows }) => [name, files, lines, Object.fromEntries(arrows)]);

  test('a room is a folder or a package, and a file beside them', () => {
    expect(show(house.rooms)).toEqual([
      ['packages/core', 3, 4, { 'src/db': 1 }],
      ['packages/wrap', 2, 2, { 'packages/core': 1 }],
      ['src/config.ts', 1, 1, { 'packages/core': 1 }],
      ['src/db', 2, 3, { 'packages/core': 1 }],
    ]);
  });

  test('folders in them are inner rooms', () => {
    expect(show(house.innerRooms).slice(0, 4)).toEqual([
      ['packages/core', 1, 1, {}],
      ['packages/core/run', 2, 3, { 'packages/core': 1, 'src/db': 1 }],
      ['packages/wrap', 1, 2, { 'packages/wrap/kinds': 1, 'packages/core': 1 }],
      ['packages/wrap/kinds', 1, 0, {}],
    ]);
  });

  test('circles count imports of types', () => {
    expect(house.circlesOfRooms).toEqual([['packages/core', 'src/db']]);
    expect(house.circles).toEqual([
      ['packages/core/src/run/machine.ts', 'packages/core/src/run/plan.ts', 'src/db/port.ts'],
    ]);
  });

  test.each([
    ['import of types', "import type { B } from './b.ts';"],
    ['export of types', "export type { B } from './b.ts';"],
    ['type by its file', "export type A = import('./b.ts').B;"],
  ])('refuses a circle by an %s', (_, text) => {
    const circle = { 'packages/core/src/a.ts': text, 'packages/core/src/b.ts': "import './a.ts';" };
    expect(subjectsOf(checkCircles, circle)).toEqual(['packages/core/src/a.ts']);
    expect(subjectsOf(checkCircles, { ...circle, 'packages/core/src/b.ts': '' })).toEqual([]);
  });

  test('names rooms, arrows and circles', () => {
    expect(describeHouse(house).split('\n')).toEqual(
      expect.arrayContaining([
        '4 rooms, 4 arrows, 8 files, 10 lines',
        'packages/wrap     2       2  → packages/core 1',
        'circle of 2 rooms: packages/core, src/db',
        'circle of 3 files: packages/core/src/run/machine.ts, packages/core/src/run/plan.ts, src/db/port.ts',
      ]),
    );
  });

  test('reads a commit without a checkout', () => {
    const file = 'scripts/structure/source.ts';
    const source = readSourcesAt('HEAD', ['scripts/structure']).find((one) => one.file === file);
    expect(source?.text).toBe(execFileSync('git', ['show', `HEAD:${file}`]).toString());
  });
});

/** Each node as `a` or `a>bc`: a leads to b and to c. */
test.each([
  ['a>b b>c c', []],
  ['a>b b>a', ['ab']],
  ['a>a b', ['a']],
  ['a>b b>c c>b d>ac', ['bc']],
  ['a>b b>a c>d d>e e>c a', ['cde', 'ab']],
  ['a>bc b>d c>d d>a', ['abcd']],
  ['a>x', []],
])('finds the circles of %s', (text, circles) => {
  const graph = new Map<string, Set<string>>();
  for (const row of text.split(' ')) {
    const [node = '', next = ''] = row.split('>');
    graph.set(node, new Set([...(graph.get(node) ?? []), ...next]));
  }
  expect(findCircles(graph).map((circle) => circle.join(''))).toEqual(circles);
});

/** From the text of a fleet file to its instances, or to its faults with line and column. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../../packages/capability/test/support/folders.ts';
import { type FleetPlan, readFleetPlan } from '../../src/box/fleet-plan.ts';

const clip = `kind: command
name: clip
version: 1.0.0
description: Cuts.
input: {type: object}
command:
  argv: [cut]
  env: {KEY: "\${CLIP_KEY}"}
`;

const clipFlow =
  'kind: command, name: clip, version: 1.0.0, description: Cuts., input: {type: object}, command: {argv: [cut]}';

interface Written {
  readonly text: string;
  readonly environment?: NodeJS.ProcessEnv;
  readonly checks?: boolean;
}

async function read({
  text,
  environment = { CLIP_KEY: 'k', PATH: process.env.PATH },
  checks = false,
}: Written) {
  const folder = await aFolder();
  await writeFile(join(folder, 'clip.yaml'), clip);
  await mkdir(join(folder, 'shout'));
  await writeFile(join(folder, 'shout', 'index.ts'), '');
  await mkdir(join(folder, 'script'));
  await writeFile(join(folder, 'script', 'package.json'), '{"capstan": {"start": ["no-such-program"]}}');
  const file = join(folder, 'fleet.yaml');
  await writeFile(file, text);
  return { folder, reading: readFleetPlan({ file, environment, checks }) };
}

async function plan(text: string, given: Omit<Written, 'text'> = {}): Promise<FleetPlan> {
  const { reading } = await read({ text, ...given });
  if ('plan' in reading) return reading.plan;
  throw new Error(JSON.stringify(reading.faults));
}

/** `FILE LINE:COLUMN CODE: MESSAGE` */
async function faultsOf(text: string, given: Omit<Written, 'text'> = {}): Promise<string[]> {
  const { reading, folder } = await read({ text, ...given });
  const faults = 'plan' in reading ? [] : reading.faults;
  return faults.flatMap(({ name, findings }) =>
    findings.map(({ line, column, code, message }) =>
      `${name.split('/').at(-1)} ${line}:${column} ${code}: ${message}`.replaceAll(folder, 'FOLDER'),
    ),
  );
}

it('gives each entry the defaults, its own facts, and those of the machine', async () => {
  const { instances, files, missing } = await plan(`
host: {name: studio, slots: 2, memory_gb: 24}
defaults:
  tags: [local]
  env: {A: 1, B: "\${CLIP_KEY}"}
  restart: on_failure
capabilities:
  clip: {wrap: clip.yaml, slots: 3, takes: 2, tags: [cpu]}
  shout: {module: shout, cost: {type: per_second, rate_usd: 0.001}, env: {B: own}, max_restarts: 4}
`);
  expect(instances).toMatchObject([
    {
      name: 'clip',
      source: { kind: 'wrap', text: clip },
      environment: { A: '1', B: 'k' },
      facts: {
        tags: ['cpu'],
        max_concurrency: 3,
        takes: 2,
        host: { name: 'studio', slots: 2, memory_gb: 24 },
      },
      restart: 'on_failure',
      maxRestarts: Infinity,
    },
    {
      name: 'shout',
      source: { kind: 'module', source: expect.stringMatching(/\/shout$/) },
      environment: { A: '1', B: 'own' },
      facts: { tags: ['local'], cost_model: { type: 'per_second', rate_usd: 0.001 } },
      maxRestarts: 4,
    },
  ]);
  expect(files.map((file) => file.split('/').at(-1))).toEqual(['fleet.yaml', 'clip.yaml']);
  expect(missing).toEqual([]);
});

it('runs a line by the shell and a list as it is, in the folder of the entry, with numbered copies', async () => {
  const { instances, folder } = await plan(`
capabilities:
  line: {program: python3 a.py, folder: shout}
  list: {program: [python3, a.py], count: 2, port: 8190}
`);
  expect(
    instances.map(({ name, source, port, environment }) => ({ name, source, port, environment })),
  ).toEqual([
    {
      name: 'line',
      source: { kind: 'program', folder: join(folder, 'shout'), command: ['/bin/sh', '-c', 'python3 a.py'] },
      port: null,
      environment: {},
    },
    ...[1, 2].map((copy) => ({
      name: `list-${copy}`,
      source: { kind: 'program', folder, command: ['python3', 'a.py'] },
      port: 8_189 + copy,
      environment: { REPLICA: String(copy) },
    })),
  ]);
});

it('leaves texts alone that others read, and a text that is written with $$', async () => {
  const { instances } = await plan(`
capabilities:
  program: {program: "echo \${A}", env: {A: "$\${B:-c}"}, warm_up: {input: {text: "\${D}"}}}
`);
  expect(instances).toMatchObject([
    { environment: { A: `\${B:-c}` }, facts: { warm_up: { input: { text: `\${D}` } } } },
  ]);
});

it('checks without the variables, and names those that are not set, and the programs of wraps', async () => {
  const text = `capabilities: {clip: {wrap: clip.yaml, env: {A: "\${OTHER}"}}}`;
  expect(await plan(text, { environment: {}, checks: true })).toMatchObject({
    missing: ['OTHER', 'CLIP_KEY'],
    prerequisites: [{ name: 'cut' }],
  });
  expect(await faultsOf(text, { environment: {} })).toEqual([
    'fleet.yaml 1:49 variable_missing: the variable OTHER is not set in the environment',
    'clip.yaml 8:14 variable_missing: the variable CLIP_KEY is not set in the environment',
  ]);
});

it('knows nothing of programs on a PATH whose variable is not set', async () => {
  const env = `env: {PATH: "\${OTHER}:/bin"}`;
  const text = `capabilities: {a: {program: [elsewhere], ${env}}, b: {wrap: clip.yaml, ${env}}}`;
  const checked = await plan(text, { environment: { CLIP_KEY: 'k' }, checks: true });
  expect(checked).toMatchObject({ missing: ['OTHER'], prerequisites: [] });
});

it('lets the variables of an entry replace those of the environment in its wrap file', async () => {
  const { missing } = await plan('capabilities: {clip: {wrap: clip.yaml, env: {CLIP_KEY: own}}}', {
    environment: {},
  });
  expect(missing).toEqual([]);
});

const entry = (text: string): string => `capabilities:\n  a: {${text}}\n`;

it.each([
  [entry('module: shout, takes: 2'), '2:29 value_invalid: is 2, and the registration names no host'],
  ['capabilities: {}', '1:15 value_invalid: it holds no capability; name one at least'],
  [
    'capabilties: {}',
    '1:1 key_unknown: unknown key "capabilties"; allowed are host, listen, defaults, capabilities',
  ],
  [entry('slots: 1'), '2:6 value_invalid: it has none of wrap, program, module; it needs one'],
  [
    entry('module: shout, wrap: clip.yaml'),
    '2:6 value_invalid: it has wrap and module of wrap, program, module; it needs one',
  ],
  [entry('module: ./gone'), '2:15 value_invalid: there is no folder FOLDER/gone'],
  [entry('wrap: gone.yaml'), '2:13 value_invalid: there is no file FOLDER/gone.yaml'],
  [entry('program: x, folder: gone'), '2:27 value_invalid: there is no folder FOLDER/gone'],
  [entry('wrap: clip.yaml, folder: .'), '2:32 value_invalid: "folder" goes with program, and not with wrap'],
  [
    entry('module: shout, restart: sometimes'),
    '2:31 value_invalid: expected one of always, on_failure, never',
  ],
  [
    entry('module: shout, cost: {type: free, rate_usd: 1}'),
    '2:51 value_invalid: a free capability has rate_usd 0',
  ],
  [
    entry('program: x, count: 1, advertise_url: "http://b:1"'),
    '2:44 value_invalid: copies have an address each; leave out count, and write an entry for each',
  ],
  [
    'capabilities:\n  a: {program: x, port: 8100}\n  b: {program: y, port: 8100}\n',
    '3:25 value_invalid: port 8100 is taken by a',
  ],
  [
    'capabilities:\n  a-1: {program: x}\n  a: {program: y, count: 1}\n',
    '3:6 value_invalid: a-1 is taken by a-1',
  ],
  [
    `listen: {host: 999.1.1.1}\n${entry('module: shout')}`,
    '1:16 value_invalid: is "999.1.1.1"; an IP address or the name of a host is allowed',
  ],
  [
    entry('program: x, cost: {type: per_call, rate_usd: 1}, warm_up: {input: {}}'),
    '2:65 value_invalid: warm_up is for instances whose rate is 0, because no project pays for that call; the rate is 1 USD',
  ],
  [
    entry(`wrap: {${clipFlow}, warm_up: {input: {}}}, cost: {type: per_call, rate_usd: 1}`),
    'value_invalid: warm_up is for instances whose rate is 0',
  ],
  [
    entry('module: shout, cost: {type: per_call, rate_usd: 1, worst_case: "{{ job.a }}"}'),
    '2:70 value_invalid: at character',
  ],
  [entry('program: [no-such-program]'), '2:17 value_invalid: no program no-such-program is on the PATH'],
  [
    entry('program: [./nothere], folder: shout'),
    '2:17 value_invalid: FOLDER/shout/nothere is no program that can be executed',
  ],
  [entry('module: .'), '2:15 value_invalid: FOLDER has no index.ts: a module is'],
  [entry('module: script'), '2:15 value_invalid: no program no-such-program is on the PATH'],
  ...['?a=1', '#a', '/?'].map((end): [string, string] => [
    entry(`program: x, advertise_url: "http://b:1${end}"`),
    '2:34 value_invalid: has a query or fragment, which is not allowed',
  ]),
  [
    entry('program: x, advertise_url: "ftp://b"'),
    '2:34 value_invalid: is ftp:, only http: and https: are allowed',
  ],
  [
    `listen: {advertise: "http://127.0.0.1:9999"}\n${entry('module: shout')}`,
    '1:21 value_invalid: has a port, and the port of each instance is added',
  ],
  ...[`\${A B}`, `\${}`, `a\${unclosed`].map((value): [string, string] => [
    entry(`program: x, env: {A: "${value}"}`),
    `variable_invalid: after \${ belongs a name of letters, digits and _, and }`,
  ]),
  ...[`tags: ["\${NOPE}"]`, `advertise_url: "http://b/\${NOPE}"`, `folder: "\${NOPE}"`].map(
    (given): [string, string] => [
      entry(`program: x, ${given}`),
      `variable_misplaced: \${NOPE} is not replaced here; allowed is env`,
    ],
  ),
  [entry('program: x, ready_timeout: 0s'), '2:34 value_invalid: is 0s; 1s to 24h is allowed'],
  [entry('program: x, ready_timeout: 30d'), '2:34 value_invalid: is 30d; 1s to 24h is allowed'],
  [entry('program: x, stop_timeout: 9999d'), '2:33 value_invalid: is 9999d; 0s to 24h is allowed'],
  [entry('program: x, count: 0'), '2:26 value_invalid: is 0; at least 1 is allowed'],
  [
    entry('program: x, port: 65534, count: 4'),
    '2:25 value_invalid: is 65534, and 4 copies have ports up to 65537; 1 to 65532 is allowed',
  ],
  [entry('program: x, count: 101'), '2:26 value_invalid: is 101; at most 100 is allowed'],
  [entry('program: []'), '2:16 value_invalid: the list has no item 1, which is required'],
  [entry('program: x, tags: [""]'), '2:26 value_invalid: has 0 characters; at least 1 are allowed'],
  ['capabilities: {__proto__: {program: x}}', '1:16 name_forbidden: the key __proto__ is not allowed'],
  ['{"capabilities": {"__proto__": {"program": "x"}}}', '1:19 name_forbidden: the key __proto__ is'],
  [entry('wrap: {kind: command, nme: b}'), '2:29 key_unknown: unknown key "nme"'],
])('names the fault of %j', async (text, expected) => {
  expect((await faultsOf(text)).join('\n')).toContain(expected);
});

it('writes a number without a unit as seconds', async () => {
  const { reading } = await read({ text: entry('program: x, ready_timeout: 5') });
  const suggestion = 'for seconds, write 5s';
  expect(reading).toMatchObject({ faults: [{ findings: [{ line: 2, column: 34, suggestion }] }] });
});

it('shows the durations and numbers of this format in an excerpt', async () => {
  const { reading } = await read({ text: entry('program: secretly, stop_timeout: 30d, count: 0') });
  const shown = expect.stringContaining('{program: ********, stop_timeout: 30d, count: 0}');
  expect(reading).toMatchObject({ faults: [{ shown }] });
});

it('shows no value that the file holds', async () => {
  const { reading } = await read({ text: entry('program: x, env: {TOKEN: sk-live-1234567890}, slot: 1') });
  expect(JSON.stringify(reading)).toContain('key_unknown');
  expect(JSON.stringify(reading)).not.toContain('sk-live');
});

/** Instances on this machine: `capability start`, `wrap` and `check`, for any capability in any language. */
import { lendOwnImports, startCapability } from '@capstan/capability/bootstrap/start-capability';
import { isKept } from '@capstan/capability/bootstrap/start-program';
import { type CheckResult, checkCapability } from '@capstan/capability/conformance';
import { checkPrerequisites, type Prerequisite } from '@capstan/capability/lifecycle/prerequisites';
import { defaultCacheDir } from '@capstan/capability/lifecycle/start-instance';
import { runUntilSignal } from '@capstan/capability/serve';
import { readWrapSource, startWrapped } from '@capstan/wrap/start-wrapped';
import { routerEnvironment } from '../../client/connection.ts';
import { group, local, usually } from '../../command.ts';
import { exitCodes } from '../../errors.ts';
import { readSource } from '../../input/arguments.ts';
import { readJob } from '../../input/run-request.ts';
import { countFindings, renderFindings } from '../../render/findings.ts';
import { createPrinter, type Printer } from '../../render/print.ts';

function print({ style, line }: Printer, results: readonly CheckResult[]): void {
  for (const { name, ok, detail } of results) {
    line(`${ok ? style.green('ok  ') : style.red('FAIL')}  ${name}: ${detail}`);
  }
  const failed = results.filter(({ ok }) => !ok).length;
  line(
    failed === 0 ? `${results.length} checks, all passed` : `${failed} of ${results.length} checks failed`,
  );
}

/** `capstan check URL`: tests any capability, in any language, against the contract. */
export const registerCheckCommand = local('check', {
  about: 'check that a capability keeps the contract; exit code 1 when it does not',
  args: { '<url>': 'base address of the instance, as in http://127.0.0.1:8100' },
  options: {
    '--json': 'print the results as JSON',
    '-i, --input <json>':
      'an input to call it with, inline or a file: checks the lines that it answers, and does the work',
  },
  run: async ({ url, json, input }, shell) => {
    const printer = createPrinter(shell);
    const given = input === undefined ? undefined : await readJob({ shell }, { job: input, target: '' });
    const results = await checkCapability(url, given);
    if (json === true) printer.json(JSON.stringify(results, null, 2));
    else print(printer, results);
    if (results.some(({ ok }) => !ok)) shell.exitWith(exitCodes.failed);
  },
});

const startCommand = local('start', {
  about:
    'start an instance and register it at ROUTER_URL, else at the running stack, until SIGTERM or SIGINT; restarts after a crash',
  args: { '<source>': 'a folder, or what npm installs: a package name, name@version, a tarball' },
  options: {
    '--cache-dir <dir>': usually('where packages and prerequisites are installed', defaultCacheDir),
    '--data <dir>': 'folder of the running stack (default: CAPSTAN_DATA, else .capstan)',
    '--no-register': 'only serve',
    '--in-process': usually(
      'run the capability in this process, so that a crash ends the command too',
      false,
    ),
  },
  run: async ({ source, cacheDir, data, register, inProcess }, shell) => {
    const { line } = createPrinter(shell);
    const isServing = isKept(shell.environment);
    const env = await routerEnvironment(shell.environment, register === true && !isServing, data);
    await lendOwnImports();
    const keeps = inProcess || isServing ? {} : { keeps: ['capability', 'start'] };
    const start = (signal: AbortSignal) =>
      startCapability({ source, cacheDir, env, print: line, signal, ...keeps });
    await runUntilSignal(start, line, isServing ? ['SIGTERM'] : undefined);
  },
});

interface Needs {
  /** Variables that are not set. */
  readonly missing: readonly string[];
  readonly prerequisites: readonly Prerequisite[];
}

/** What a valid file still needs of the machine that starts it. */
export async function remarkNeeds({ missing, prerequisites }: Needs, { remark }: Printer): Promise<void> {
  if (missing.length > 0) remark(`to be set in the environment: ${missing.join(', ')}`);
  const host = { cacheDir: defaultCacheDir, signal: new AbortController().signal };
  const checked = await checkPrerequisites(prerequisites, host);
  const names = new Set(checked.missing.map(({ name }) => name));
  if (names.size > 0) remark(`to be installed on this machine: ${[...names].join(', ')}`);
}

const wrapCommand = local('wrap', {
  about: 'start an instance without code: a YAML file describes the program or service that does the work',
  args: { '<file>': 'the file, see docs/wrap.md' },
  options: {
    '--check': usually('only check the file; exits 1 when it has errors', false),
    '--state-dir <dir>': usually('where jobs of providers are kept by Idempotency-Key', '.capstan/wrap'),
    '--data <dir>': 'folder of the running stack (default: CAPSTAN_DATA, else .capstan)',
    '--no-register': 'only serve',
  },
  run: async ({ file, check, stateDir, data, register }, shell) => {
    const print = createPrinter(shell);
    const { name, text, type } = await readSource(file, shell.stdin);
    const environment = await routerEnvironment(shell.environment, register === true && !check, data);
    const source = { file, text, stateDir, environment, checks: check };
    const reading = readWrapSource(source);
    if ('findings' in reading) {
      renderFindings(reading.findings, { name, text: reading.shown, type }, print).forEach(print.remark);
      print.remark(`${file}: ${countFindings(reading.findings)}`);
      return shell.exitWith(exitCodes.failed);
    }
    const { capability, missing } = reading;
    const { spec } = capability;
    if (check) {
      await remarkNeeds({ missing, prerequisites: capability.prerequisites }, print);
      return print.line(`${print.style.green('✓ valid')}  ${spec.name} ${spec.version}`);
    }
    const start = (signal: AbortSignal) => startWrapped(source, capability, { print: print.line, signal });
    await runUntilSignal(start, print.line);
  },
});

/** `capstan capability start SOURCE`: the eight steps of the bootstrap lifecycle, one line each. */
export const registerCapabilityCommand = group(
  'capability',
  'run and check capability instances on this machine',
  [registerCheckCommand, startCommand, wrapCommand],
);

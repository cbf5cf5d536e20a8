/**
 * Runs a capability as a child process: a program in any language, whose package.json holds the start command, or this
 * program once more with a module (`capability start`) or a file (`wrap`). This process performs the rest of the
 * bootstrap lifecycle. The program serves `/health`, `/spec` and `/exec` at HOST and PORT. On SIGTERM
 * it ends after its calls have ended. It stays in the process group of this process, so a signal to the group ends
 * both. A guard ends the program when this process is gone.
 *
 * A program that exits is restarted at the same address. The instance stays registered meanwhile: a call that finds no
 * server is retried, whereas a run fails when its only instance is deregistered.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { CapabilitySpec } from '@capstan/core/contracts/capability';
import { readShapeIssue, wordShape } from '@capstan/core/definitions/findings';
import { readJson } from '@capstan/core/definitions/source/read-json';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import { splitPointer } from '@capstan/core/json/values';
import type { Capability } from '../define-capability.ts';
import { announce, type Registrable } from '../lifecycle/registration.ts';
import {
  findPort,
  graceMs,
  type InstanceOptions,
  type RunningInstance,
  readReport,
  startInstance,
  waitUntilReady,
} from '../lifecycle/start-instance.ts';
import { localAddress, readSettings } from '../settings.ts';

// One run of a program: a child in the process group of this process, and a guard. The guard is a small shell that
// reads from a pipe. When this process is gone, the pipe closes, and the guard ends the program.

interface ProgramCommand {
  /** The working directory of the program. */
  readonly folder: string;
  readonly command: readonly [string, ...string[]];
  readonly environment: NodeJS.ProcessEnv;
}

interface ProgramPlace {
  readonly host: string;
  readonly port: number;
}

interface ProgramRun {
  readonly process: ChildProcess;
  /** The facts of a module, which reports them when it is ready; never for other programs. */
  readonly reported: Promise<Registrable>;
  /** Its address on this machine. */
  readonly local: string;
  /** Resolves with a description of the exit; never rejects. */
  readonly ended: Promise<string>;
}

const guardScript = `
trap '' HUP INT TERM
read -r _
kill -s TERM -- "$1" || exit 0
tries=100
while kill -s 0 -- "$1" && [ "$tries" -gt 0 ]; do
  sleep 0.1
  tries=$((tries - 1))
done
kill -s KILL -- "$1"
`;

/** Ends a process when this process is gone. @param target the id of a process, or of a process group as a negative number */
export function startGuard(target: number): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', guardScript, 'capstan-guard', String(target)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => undefined);
  guard.stdin?.on('error', () => undefined);
  guard.unref();
  return guard;
}

const longestLine = 16 * 1024;

/** Splits output at \n and \r, with which programs overwrite their progress. A longer line is cut into pieces. */
export function createLines(onLine: (line: string) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split(/[\r\n]+/);
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
    for (; rest.length > longestLine; rest = rest.slice(longestLine)) onLine(rest.slice(0, longestLine));
  };
}

function runProgram(
  { command, folder, environment, facts }: ProgramSource,
  { host, port }: ProgramPlace,
): ProgramRun {
  const [program, ...args] = command;
  const child = spawn(program, args, {
    cwd: folder,
    // Without ROUTER_URL: this process registers the program, which may use an SDK that registers too.
    env: { ...environment, ROUTER_URL: undefined, HOST: host, PORT: String(port) },
    stdio: ['ignore', 'inherit', 'inherit', ...(facts === undefined ? (['ipc'] as const) : [])],
  });
  const reported = new Promise<Registrable>((resolve) => {
    child.once('message', (message) => resolve(message as Registrable));
  });
  const guard = child.pid === undefined ? null : startGuard(child.pid);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`${program} could not be started: ${error.message}`));
    child.once('exit', (code, signal) => {
      guard?.kill('SIGKILL'); // its number may soon belong to another process
      resolve(`${command.join(' ')} ended ${signal === null ? `with exit code ${code}` : `by ${signal}`}`);
    });
  });
  return { process: child, local: localAddress(host, port), ended, reported };
}

/** Sends SIGTERM; sends SIGKILL when the program has not ended within the limit. */
async function stopProgram({ process, ended }: ProgramRun, limitMs: number): Promise<void> {
  process.kill('SIGTERM');
  const force = setTimeout(() => process.kill('SIGKILL'), limitMs);
  await ended;
  clearTimeout(force);
}

/** Facts that `/spec` does not hold. */
export type ProgramFacts = Pick<
  Registrable,
  'tags' | 'max_concurrency' | 'settle' | 'warm_up' | 'shared_with'
>;

interface ProgramSource extends ProgramCommand {
  /** Absent: the command serves a module, which reports all facts. */
  readonly facts?: ProgramFacts;
}

// A module or a file is served by another process of this program, which this variable marks.

const keptVariable = 'CAPSTAN_KEPT_INSTANCE';

/** Whether this process serves, and another one keeps it. Only SIGTERM stops it: the other one decides. */
export function isKept(environment: NodeJS.ProcessEnv): boolean {
  return environment[keptVariable] === 'true';
}

const slotsVariable = 'CAPSTAN_KEPT_SLOTS';

/** Variables of a process that is kept. @param slots calls that it runs in parallel, if the module does not decide that */
export function keptVariables(slots?: number): NodeJS.ProcessEnv {
  return { [keptVariable]: 'true', [slotsVariable]: slots === undefined ? undefined : String(slots) };
}

/** A command of this program, in a process that is kept. */
export function keptCommand(words: readonly string[], environment: NodeJS.ProcessEnv): ProgramCommand {
  const [program = ''] = process.argv.slice(1);
  return {
    folder: process.cwd(),
    command: [process.execPath, ...process.execArgv, program, ...words],
    environment: { ...environment, ...keptVariables() },
  };
}

/** Facts that a message can hold. */
export function reportedFacts(capability: Capability): Registrable {
  const { spec, cost_model, tags, max_concurrency, settle, warm_up, shared_with, max_resident } = capability;
  return { spec, cost_model, tags, max_concurrency, settle, warm_up, shared_with, max_resident };
}

/** Starts the instance of a kept process: it registers nowhere, and the process above prints the other steps. */
export async function startKept(
  given: Capability,
  environment: NodeJS.ProcessEnv,
  options: Omit<InstanceOptions, 'settings'> & { readonly hidden: RegExp },
): Promise<RunningInstance> {
  const { print, hidden, ...others } = options;
  const slots = Number(environment[slotsVariable] || given.max_concurrency);
  const capability = { ...given, max_concurrency: slots };
  process.on('SIGINT', () => undefined); // a terminal sends it to both processes
  const settings = readSettings({ ...environment, ROUTER_URL: undefined });
  const printLog = (line: string): void => void (hidden.test(line) || print(line));
  const instance = await startInstance(capability, { ...others, settings, print: printLog });
  process.send?.(reportedFacts(capability), () => process.disconnect());
  return instance;
}

const specTimeoutMs = 5_000;

/** Before a restart. A run of `servedMs` resets them. */
export const restartDelays = { firstMs: 500, longestMs: 30_000, servedMs: 60_000 } as const;

/** @param failures ends in a row, with this one */
export function delayAfter(failures: number): number {
  return Math.min(restartDelays.firstMs * 2 ** (failures - 1), restartDelays.longestMs);
}

/** @param local the address of an instance @throws Error when it does not answer, or its spec is invalid */
export async function readSpec(local: string): Promise<CapabilitySpec> {
  const response = await fetch(`${local}/spec`, { signal: AbortSignal.timeout(specTimeoutMs) });
  if (!response.ok) throw new Error(`/spec: answered with HTTP ${response.status}`);
  const text = await response.text();
  const { root, problems } = readJson(text);
  if (root === null) throw new Error(`/spec: ${problems[0]?.message}`);
  const parsed = CapabilitySpec.safeParse(JSON.parse(text), { error: wordShape });
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.flatMap((issue) => readShapeIssue(issue, root, text));
  const shown = faults.map(({ pointer, message }) => `${splitPointer(pointer).join('.')}: ${message}`);
  throw new Error(`/spec: ${shown.slice(0, 5).join('; ')}`);
}

/** The facts for the registration: the spec as the program serves it, and the settings of the folder. */
async function readFacts(
  { local, reported }: ProgramRun,
  facts: ProgramSource['facts'],
): Promise<Registrable> {
  if (facts === undefined) return reported;
  const spec = await readSpec(local);
  const { tags, max_concurrency, settle, warm_up, shared_with } = facts;
  const { cost_model } = spec;
  return { spec, cost_model, tags, max_concurrency, settle, warm_up, shared_with };
}

/**
 * A module reports when it is ready: it may install its prerequisites for minutes.
 * @returns how it became ready @throws Error when it ends first, or does not answer
 */
function awaitReady(
  { local, ended, reported }: ProgramRun,
  { facts }: ProgramSource,
  options: InstanceOptions,
): Promise<string> {
  return Promise.race([
    ended.then((reason) => Promise.reject(new Error(reason))),
    facts === undefined
      ? reported.then(() => 'the instance is ready')
      : waitUntilReady(`${local}/health`, options.readinessIntervalMs).then(
          (attempts) => `GET /health answered at attempt ${attempts}`,
        ),
  ]);
}

interface KeptProgram {
  readonly isReady: () => boolean;
  /** Ends the program without a restart; its calls may end within the limit. */
  readonly stop: (limitMs: number) => Promise<void>;
  readonly kill: () => void;
}

interface Keeping {
  readonly source: ProgramSource;
  readonly options: InstanceOptions;
  readonly start: () => ProgramRun;
  /** Called after each restart; does not throw. */
  readonly onReady: () => Promise<void>;
}

/** @param first a run that is ready */
function keepProgram(first: ProgramRun, keeping: Keeping): KeptProgram {
  const stopping = new AbortController();
  const kept = { run: first, isReady: true };
  // Only the delay before a restart rejects, when it is aborted.
  const ended = keepRunning(kept, keeping, stopping.signal).catch(() => undefined);
  return {
    isReady: () => kept.isReady,
    stop: async (limitMs) => {
      stopping.abort();
      await stopProgram(kept.run, limitMs);
      await ended;
    },
    kill: () => void kept.run.process.kill('SIGKILL'),
  };
}

interface Kept {
  run: ProgramRun;
  isReady: boolean;
}

async function keepRunning(kept: Kept, keeping: Keeping, signal: AbortSignal): Promise<void> {
  const { options } = keeping;
  for (let failures = 1; ; failures += 1) {
    const beganAt = performance.now();
    const reason = await kept.run.ended;
    kept.isReady = false;
    if (signal.aborted || options.signal?.aborted) return;
    if (performance.now() - beganAt >= restartDelays.servedMs) failures = 1;
    const pauseMs = delayAfter(failures);
    options.print(`${reason}; it is started again in ${pauseMs / 1_000} s`);
    await sleep(pauseMs, undefined, { signal });
    await startAgain(kept, keeping, signal);
  }
}

/** Starts the program again; ends a run that does not become ready. */
async function startAgain(kept: Kept, { source, options, start, onReady }: Keeping, signal: AbortSignal) {
  kept.run = start();
  try {
    const said = await awaitReady(kept.run, source, options);
    if (signal.aborted) return;
    kept.isReady = true;
    options.print(`started again: ${said}`);
    await onReady();
  } catch (error) {
    if (!signal.aborted) options.print(`not ready: ${error instanceof Error ? error.message : error}`);
    await stopProgram(kept.run, 0);
  }
}

/** @throws Error when a step fails; everything started so far is stopped then */
export async function startProgram(
  source: ProgramSource,
  options: InstanceOptions,
): Promise<RunningInstance> {
  const { settings, print } = options;
  const isModule = source.facts === undefined; // it prints these steps itself
  const printStep = (line: string): void => void (isModule || print(line));
  printStep('2/8 prerequisites: those of the program are its own');
  printStep('3/8 install: nothing');
  const port = await findPort(settings.HOST, settings.PORT);
  const start = (): ProgramRun => runProgram(source, { host: settings.HOST, port });
  const run = start();
  printStep(`4/8 bind: ${source.command.join(' ')} is to listen on ${run.local}`);
  try {
    printStep(`5/8 ready: ${await awaitReady(run, source, options)}`);
    options.signal?.throwIfAborted();
    const facts = await readFacts(run, source.facts);
    const endpoint = withoutEndSlashes(settings.ADVERTISE_URL ?? run.local);
    const onReady = async (): Promise<void> => void (await announced.again());
    const announced = await announce(
      {
        facts,
        endpoint,
        report: () => readReport(run.local),
        isServing: () => program.isReady(),
        close: () => program.stop(options.graceMs ?? graceMs),
      },
      options,
    );
    const program = keepProgram(run, { source, options, start, onReady });
    return { endpoint, stop: announced.stop, abortCalls: program.kill };
  } catch (error) {
    await stopProgram(run, 0);
    throw error;
  }
}

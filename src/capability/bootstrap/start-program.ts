/**
 * A capability in any language as a child: its package.json says how it is started, this process does the rest of
 * the bootstrap lifecycle for it. The program serves `/health`, `/spec` and `/exec` at HOST and PORT, and ends when
 * its calls have, on SIGTERM. It stays in the process group of this process, so that what ends one ends both.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { CapabilitySpec } from '../../contracts/capability.ts';
import { announce } from '../lifecycle/announce.ts';
import { bindServer } from '../lifecycle/bind.ts';
import { waitUntilReady } from '../lifecycle/readiness.ts';
import type { Registrable } from '../lifecycle/router-client.ts';
import { graceMs } from '../lifecycle/shutdown.ts';
import type { InstanceOptions, RunningInstance } from '../lifecycle/start-instance.ts';
import { localAddress } from '../settings.ts';

export interface ProgramSource {
  /** The working directory of the program. */
  readonly folder: string;
  readonly command: readonly [string, ...string[]];
  readonly facts: Pick<Registrable, 'tags' | 'max_concurrency' | 'settle'>;
  readonly environment: NodeJS.ProcessEnv;
}

const specTimeoutMs = 5_000;

/** A port that is free now: the program binds it a moment later. */
async function findPort(host: string, port: number | undefined): Promise<number> {
  const server = createServer();
  const found = await bindServer(server, host, port);
  await new Promise((resolve) => server.close(resolve));
  return found;
}

interface Child {
  readonly process: ChildProcess;
  /** Says how it ended; never rejects. */
  readonly ended: Promise<string>;
}

function startChild({ command, folder, environment }: ProgramSource, host: string, port: number): Child {
  const [program, ...args] = command;
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...environment, HOST: host, PORT: String(port) },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`${program} could not be started: ${error.message}`));
    child.once('exit', (code, signal) => {
      resolve(`${command.join(' ')} ended ${signal === null ? `with exit code ${code}` : `by ${signal}`}`);
    });
  });
  return { process: child, ended };
}

async function stopChild({ process, ended }: Child, limitMs: number): Promise<void> {
  process.kill('SIGTERM');
  const force = setTimeout(() => process.kill('SIGKILL'), limitMs);
  await ended;
  clearTimeout(force);
}

/** What registration needs: the spec as it is served, and what the folder says beside it. */
async function readFacts(endpoint: string, facts: ProgramSource['facts']): Promise<Registrable> {
  const response = await fetch(`${endpoint}/spec`, { signal: AbortSignal.timeout(specTimeoutMs) });
  const spec = CapabilitySpec.parse(await response.json());
  const { tags, max_concurrency, settle } = facts;
  return { spec, cost_model: spec.cost_model, tags, max_concurrency, settle };
}

/** @throws Error when it ends first, or does not answer */
async function awaitReady(child: Child, local: string, options: InstanceOptions): Promise<void> {
  const ended = child.ended.then((reason) => Promise.reject(new Error(reason)));
  const attempts = await Promise.race([
    ended,
    waitUntilReady(`${local}/health`, options.readinessIntervalMs),
  ]);
  options.print(`5/8 ready: GET /health answered at attempt ${attempts}`);
  options.signal?.throwIfAborted();
}

/** @throws Error when a step fails; nothing is left running then */
export async function startProgram(
  source: ProgramSource,
  options: InstanceOptions,
): Promise<RunningInstance> {
  const { settings, print } = options;
  print('2/8 prerequisites: those of the program are its own');
  print('3/8 install: nothing');
  const port = await findPort(settings.HOST, settings.PORT);
  const local = localAddress(settings.HOST, port);
  const child = startChild(source, settings.HOST, port);
  print(`4/8 bind: ${source.command.join(' ')} is to listen on ${local}`);
  try {
    await awaitReady(child, local, options);
    const facts = await readFacts(local, source.facts);
    const endpoint = (settings.ADVERTISE_URL ?? local).replace(/(?<!\/)\/+$/, '');
    const close = () => stopChild(child, options.graceMs ?? graceMs);
    const stop = await announce({ facts, endpoint, queueDepth: () => undefined, close }, options);
    return { endpoint, stop, abortCalls: () => void child.process.kill('SIGKILL'), ended: child.ended };
  } catch (error) {
    await stopChild(child, 0);
    throw error;
  }
}

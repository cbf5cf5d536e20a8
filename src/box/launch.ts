/** Starts the runs of instances: a program or a module as a process of its own, and all wraps in one process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { findSource } from '@capstan/capability/bootstrap/start-capability';
import { keptVariables, type ProgramFacts, readSpec } from '@capstan/capability/bootstrap/start-program';
import type { Registrable } from '@capstan/capability/lifecycle/registration';
import { findHealthFault, findPort } from '@capstan/capability/lifecycle/start-instance';
import { localAddress } from '@capstan/capability/settings';
import { findProgram } from '../dev/programs.ts';
import type { InstanceRun, LaunchPlace } from './kept-instance.ts';
import { type ProcessRun, startProcess } from './process-run.ts';
import type { WrapsHost } from './wraps-host.ts';

const healthMs = { pause: 250, limit: 2_000 } as const;

/** Resolves when `/health` is ok. */
async function awaitHealth(local: string, { ended }: ProcessRun): Promise<void> {
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  while (!isOver) {
    if ((await findHealthFault(`${local}/health`, healthMs.limit)) === null) return;
    await sleep(healthMs.pause);
  }
}

const plain: ProgramFacts = { tags: [], max_concurrency: 1, settle: 'computed' };

type Command = readonly [string, ...string[]];

/** What an SDK prints without ROUTER_URL. This process registers the program. */
const servingOnly = /register: not registered, ROUTER_URL is not set/;

async function launchProgram(
  place: LaunchPlace,
  {
    command,
    folder,
    facts,
  }: { readonly command: Command; readonly folder: string; readonly facts: ProgramFacts },
): Promise<InstanceRun> {
  const { planned, watchdog, log, host, port } = place;
  await findPort(host, port);
  // Python keeps what it prints until its buffer is full, unless it writes to a terminal.
  const environment = { PYTHONUNBUFFERED: '1', ...place.environment };
  const onLine = (line: string): void => void (servingOnly.test(line) || log(line));
  const run = startProcess({ command, folder, environment, onLine }, watchdog);
  const local = localAddress(host, port);
  const ready = awaitHealth(local, run).then(async (): Promise<Registrable> => {
    const spec = await readSpec(local);
    const { tags, max_concurrency, settle, warm_up, shared_with } = facts;
    const own = { tags, max_concurrency, settle, warm_up, shared_with };
    return { spec, cost_model: spec.cost_model, ...own, ...planned.facts };
  });
  return { ready, ended: run.ended, stop: run.stop, kill: run.kill };
}

async function launchModule(place: LaunchPlace, folder: string): Promise<InstanceRun> {
  const { planned, watchdog, log, host, port, cacheDir } = place;
  await findPort(host, port);
  const { command, args } = findProgram('cli/main');
  const words = ['capability', 'start', folder, '--cache-dir', cacheDir];
  let report: (facts: Registrable) => void = () => undefined;
  const ready = new Promise<Registrable>((resolve) => {
    report = resolve;
  });
  const start = {
    command: [command, ...args, ...words] as Command,
    folder: process.cwd(),
    environment: { ...place.environment, ...keptVariables(planned.facts.max_concurrency) },
    onMessage: (facts: unknown) => report({ ...(facts as Registrable), ...planned.facts }),
    onLine: (line: string) => void (/^\d\/8 /.test(line) || log(line)),
  };
  const run = startProcess(start, watchdog);
  return { ready, ended: run.ended, stop: run.stop, kill: run.kill };
}

type Launch = (signal: AbortSignal) => Promise<InstanceRun>;

/** The package is installed once, not with each restart. */
function createModuleLauncher(place: LaunchPlace, source: string): Launch {
  let found: Awaited<ReturnType<typeof findSource>> | undefined;
  return async (signal) => {
    found ??= await findSource(source, place.cacheDir, signal);
    const { folder, program } = found;
    return program === undefined ? launchModule(place, folder) : launchProgram(place, { ...program, folder });
  };
}

/** Starts one run after the other of an instance. */
export function createLauncher(place: LaunchPlace, wraps: WrapsHost): Launch {
  const { source } = place.planned;
  switch (source.kind) {
    case 'program':
      return () => launchProgram(place, { ...source, facts: plain });
    case 'module':
      return createModuleLauncher(place, source.source);
    case 'wrap':
      return async () => wraps.launch(place, source);
  }
}

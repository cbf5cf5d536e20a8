/** The one process of all wraps, as `capstan up` sees it: started with the first wrap, and again after its end. */
import type { Registrable } from '@capstan/capability/lifecycle/registration';
import { findProgram } from '../dev/programs.ts';
import type { Watchdog } from '../dev/supervisor/watchdog.ts';
import type { InstanceRun, LaunchPlace } from './kept-instance.ts';
import { type ProcessEnd, type ProcessRun, startProcess } from './process-run.ts';
import type { FromWraps, ToWraps } from './wraps-messages.ts';

export interface WrapsHost {
  /** Starts the run of a wrap in the process. */
  readonly launch: (
    place: LaunchPlace,
    source: { readonly text: string; readonly folder: string },
  ) => InstanceRun;
  readonly stop: () => Promise<void>;
  readonly kill: () => void;
}

interface WrapsOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly stateDir: string;
  readonly watchdog: Watchdog;
  /** A line that belongs to no wrap. */
  readonly log: (line: string) => void;
  /** How much longer than its calls may take a wrap has to stop, before the process counts as hanging; default 3,000. */
  readonly graceMs?: number;
}

/** A wrap in the process. */
interface Hosted {
  readonly ready: (facts: Registrable) => void;
  readonly end: (end: ProcessEnd) => void;
  readonly log: (line: string) => void;
}

interface HostState {
  process: ProcessRun | null;
  /** The wrap for which the process is killed. */
  killedFor: string | null;
  readonly wraps: Map<string, Hosted>;
}

function receive({ wraps }: HostState, message: FromWraps): void {
  const hosted = wraps.get(message.name);
  if (message.is === 'log') hosted?.log(message.line);
  else if (message.is === 'ready') hosted?.ready(message.facts);
  else {
    wraps.delete(message.name);
    hosted?.end({ reason: message.reason, isClean: false });
  }
}

function openProcess(state: HostState, { environment, watchdog, log }: WrapsOptions): ProcessRun {
  const { command, args } = findProgram('box/wraps-process');
  const opened = startProcess(
    {
      command: [command, ...args],
      folder: process.cwd(),
      environment,
      onMessage: (message) => receive(state, message as FromWraps),
      onLine: log,
    },
    watchdog,
  );
  void opened.ended.then(({ reason }) => {
    state.process = null;
    const ended = [...state.wraps];
    const { killedFor } = state;
    state.wraps.clear();
    state.killedFor = null;
    for (const [name, { end }] of ended) {
      const isOfOther = killedFor !== null && killedFor !== name;
      const how = { reason: `the process of the wraps ${reason}`, isClean: false };
      end(isOfOther ? { ...how, isOfOther } : how);
    }
  });
  return opened;
}

export function createWrapsHost(options: WrapsOptions): WrapsHost {
  const state: HostState = { process: null, killedFor: null, wraps: new Map() };
  const { graceMs = 10_000, log: logOwn } = options;
  return {
    launch: ({ planned, environment, log }, { text, folder }) => {
      state.process ??= openProcess(state, options);
      const { process: opened, wraps } = state;
      const { name, facts: given, stopMs } = planned;
      let hosted: Omit<Hosted, 'log'> = { ready: () => undefined, end: () => undefined };
      const ready = new Promise<Registrable>((resolve) => {
        hosted = { ...hosted, ready: (facts) => resolve({ ...facts, ...given }) };
      });
      const ended = new Promise<ProcessEnd>((resolve) => {
        hosted = { ...hosted, end: resolve };
      });
      wraps.set(name, { ...hosted, log });
      const send = (message: ToWraps): void => opened.send(message);
      const { stateDir } = options;
      const slots = given.max_concurrency;
      send({ do: 'start', name, text, folder, stateDir, environment, slots, stopMs });
      const end = async (limitMs: number): Promise<void> => {
        send({ do: 'stop', name });
        const late = setTimeout(() => {
          logOwn(`${name} does not stop, so the process of the wraps is killed`);
          state.killedFor = name;
          opened.kill();
        }, limitMs + graceMs);
        await ended;
        clearTimeout(late);
      };
      return { ready, ended, stop: end, kill: () => void end(0) };
    },
    stop: async () => state.process?.stop(graceMs),
    kill: () => state.process?.kill(),
  };
}

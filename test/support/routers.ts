/** Routers as separate processes on one database. They end with the test, even when it fails or is killed. */
import { fork } from 'node:child_process';
import type { DeregisterAnswer } from '@capstan/core/contracts/capability';
import { findCompiled } from './compiled.ts';
import type { CallOrder, CallReport, FromRouter, Goodbye, ToRouter } from './router-messages.ts';

export interface RouterProcess {
  /** Resolves when it has seen the current registrations. */
  refresh(): Promise<void>;
  /** @returns ends in the order of their arrival; when the process ends first, those up to then */
  run(orders: readonly CallOrder[], concurrency: number): Promise<readonly CallReport[]>;
  /** @throws Error when it ends without an answer */
  deregister(goodbye: Goodbye): Promise<DeregisterAnswer>;
  /** SIGSTOP and SIGCONT. */
  pause(): void;
  resume(): void;
  isOver(): boolean;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

interface Task {
  readonly reports: CallReport[];
  deregistered: DeregisterAnswer | undefined;
  readonly finish: () => void;
}

export interface RouterOptions {
  readonly packageFolder: string;
  readonly databaseUrl: string;
  readonly leaseMs: number;
  /** Its time zone, by the environment. */
  readonly timezone: string;
}

/** @throws Error with its output when it ends before it is ready */
export async function startRouter(options: RouterOptions): Promise<RouterProcess> {
  const { packageFolder, databaseUrl, leaseMs, timezone } = options;
  const child = fork(findCompiled(packageFolder, 'test/support/router-process.ts'), {
    env: {
      ...process.env,
      TZ: timezone,
      DATABASE_URL: databaseUrl,
      LEASE_MS: String(leaseMs),
      LOG_LEVEL: process.env.TEST_LOGS ? 'info' : 'silent',
    },
    execArgv: [],
    stdio: ['ignore', process.env.TEST_LOGS ? 'inherit' : 'ignore', 'pipe', 'ipc'],
  });
  let printed = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    printed = (printed + text).slice(-4_000);
  });
  const tasks = new Map<number, Task>();
  let lastId = 0;
  let isOver = false;
  const over = new Promise<void>((resolve) =>
    child.once('exit', (code) => {
      isOver = true;
      if (code !== null && code !== 0) console.error(`a router ended with ${code}: ${printed}`);
      for (const { finish } of tasks.values()) finish();
      resolve();
    }),
  );
  const ready = new Promise<void>((resolve, reject) => {
    child.on('message', (message: FromRouter) => {
      switch (message.kind) {
        case 'ready':
          return resolve();
        case 'ended':
          return void tasks.get(message.id)?.reports.push(message.report);
        case 'done': {
          const task = tasks.get(message.id);
          if (task !== undefined) task.deregistered = message.deregistered;
          return task?.finish();
        }
      }
    });
    void over.then(() => reject(new Error(`a router ended: ${printed}`)));
  });
  ready.catch(() => undefined);

  const tell = (message: ToRouter): void => {
    if (child.connected) child.send(message, () => undefined);
  };
  const order = (toMessage: (id: number) => ToRouter): Promise<Task> =>
    new Promise((resolve) => {
      const id = ++lastId;
      const finish = (): void => {
        tasks.delete(id);
        resolve(task);
      };
      const task: Task = { reports: [], deregistered: undefined, finish };
      if (isOver) return finish();
      tasks.set(id, task);
      tell(toMessage(id));
    });

  await ready;
  return {
    refresh: async () => {
      await order((id) => ({ kind: 'refresh', id }));
    },
    run: async (orders, concurrency) => {
      const { reports } = await order((id) => ({ kind: 'run', id, orders, concurrency }));
      return reports;
    },
    deregister: async (goodbye) => {
      const { deregistered } = await order((id) => ({ kind: 'deregister', id, goodbye }));
      if (deregistered === undefined) throw new Error(`a router ended: ${printed}`);
      return deregistered;
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    isOver: () => isOver,
    kill: () => {
      child.kill('SIGKILL');
      return over;
    },
    stop: () => {
      tell({ kind: 'stop' });
      return over;
    },
  };
}

/** Routers as processes of their own on one database. They end with the test, also when it fails or is killed. */
import { fork } from 'node:child_process';
import { compiledFlags, findCompiled } from './compiled.ts';
import type { CallOrder, CallReport, FromRouter, ToRouter } from './router-messages.ts';

export interface RouterProcess {
  /** Resolves when it has seen what is registered now. */
  refresh(): Promise<void>;
  /** @returns ends in the order in which they came; when the process ends first, those that came until then */
  run(orders: readonly CallOrder[], concurrency: number): Promise<readonly CallReport[]>;
  isOver(): boolean;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

interface Task {
  readonly reports: CallReport[];
  readonly finish: () => void;
}

export interface RouterOptions {
  readonly packageFolder: string;
  readonly databaseUrl: string;
  readonly leaseMs: number;
}

/** @throws Error with what it printed when it ends before it is ready */
export async function startRouter(options: RouterOptions): Promise<RouterProcess> {
  const { packageFolder, databaseUrl, leaseMs } = options;
  const child = fork(findCompiled(packageFolder, 'test/support/router-process.ts'), {
    execArgv: [...compiledFlags],
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      LEASE_MS: String(leaseMs),
      LOG_LEVEL: process.env.TEST_LOGS ? 'info' : 'silent',
    },
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
        case 'done':
          return tasks.get(message.id)?.finish();
      }
    });
    void over.then(() => reject(new Error(`a router ended: ${printed}`)));
  });
  ready.catch(() => undefined);

  const tell = (message: ToRouter): void => {
    if (child.connected) child.send(message, () => undefined);
  };
  const order = (toMessage: (id: number) => ToRouter): Promise<readonly CallReport[]> =>
    new Promise((resolve) => {
      const id = ++lastId;
      const reports: CallReport[] = [];
      const finish = (): void => {
        tasks.delete(id);
        resolve(reports);
      };
      if (isOver) return finish();
      tasks.set(id, { reports, finish });
      tell(toMessage(id));
    });

  await ready;
  return {
    refresh: async () => {
      await order((id) => ({ kind: 'refresh', id }));
    },
    run: (orders, concurrency) => order((id) => ({ kind: 'run', id, orders, concurrency })),
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

/** Debian's Prometheus, scraping the given pages each second. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { choosePort } from '../../src/dev/ports.ts';
import { waitFor } from './wait.ts';

export interface PrometheusServer {
  /** Current numeric values of an expression's series. @throws Error when it is refused */
  query(expression: string): Promise<readonly number[]>;
  stop(): Promise<void>;
}

export function findPrometheus(): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.map((folder) => join(folder, 'prometheus')).find((file) => existsSync(file)) ?? null;
}

function toConfiguration(urls: readonly string[]): string {
  const targets = urls.map((url) => new URL(url).host);
  return JSON.stringify({
    global: { scrape_interval: '1s' },
    scrape_configs: [{ job_name: 'capstan', static_configs: [{ targets }] }],
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}

/** @param urls of pages `/metrics` */
export async function startPrometheus(program: string, urls: readonly string[]): Promise<PrometheusServer> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-prometheus-'));
  const file = join(folder, 'prometheus.yml');
  await writeFile(file, toConfiguration(urls));
  const port = await choosePort([], new Set());
  const child = spawn(
    program,
    [
      ...[`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`],
      ...[`--web.listen-address=127.0.0.1:${port}`, '--log.level=error'],
    ],
    { stdio: 'ignore' },
  );
  const url = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    await end(child);
    await rm(folder, { recursive: true, force: true });
  };
  await waitFor('Prometheus to be ready', () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return {
    stop,
    query: async (expression) => {
      const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
      const { status, error, data } = (await response.json()) as {
        status: string;
        error?: string;
        data: { result: { value: [number, string] }[] };
      };
      if (status !== 'success') throw new Error(`${expression}: ${error}`);
      return data.result.map(({ value }) => Number(value[1])).filter((value) => !Number.isNaN(value));
    },
  };
}

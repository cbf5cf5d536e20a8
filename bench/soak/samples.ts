/** How large everything is at a moment. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Cluster } from '../../scripts/cluster/start-cluster.ts';
import type { Db } from '../../src/db/connect.ts';
import type { OpenBooks } from '../growth/books.ts';

export interface Sample {
  readonly atMs: number;
  /** Bytes by part of the cluster, with its children; what several share is counted once. */
  readonly memory: ReadonlyMap<string, number>;
  readonly connections: number;
  /** Bytes by table. */
  readonly tables: ReadonlyMap<string, number>;
}

function proportionalBytes(pid: string): number {
  try {
    const kib = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1];
    return Number(kib ?? 0) * 1_024;
  } catch {
    return 0; // it has ended
  }
}

function childrenOf(pid: string): string[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').split(' ').filter(Boolean),
    );
  } catch {
    return [];
  }
}

function sizeOf(pid: string): number {
  return childrenOf(pid).reduce((sum, child) => sum + sizeOf(child), proportionalBytes(pid));
}

export interface SampleSources {
  readonly cluster: Pick<Cluster, 'pids'>;
  readonly books: OpenBooks;
  readonly db: Db;
}

export function createSampler({ cluster, books, db }: SampleSources): { take(): Promise<Sample> } {
  return {
    take: async () => {
      const memory = new Map([...cluster.pids()].map(([part, pid]) => [part, sizeOf(String(pid))]));
      const { bytes } = await books.read();
      const { rows } = await db.raw<{ rows: [{ connections: number }] }>(
        "select count(*)::int as connections from pg_stat_activity where backend_type = 'client backend'",
      );
      return { atMs: performance.now(), memory, tables: bytes, connections: rows[0].connections };
    },
  };
}

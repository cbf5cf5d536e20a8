/** The programs of a cluster that npm does not bring: found on the PATH, else built with Go once and kept in the cache. */
import { findOnPath } from '../../src/dev/temporal/source.ts';
import { ensureGoProgram } from '../tools/ensure-program.ts';
import { versitygw } from '../tools/versitygw.ts';

const temporal = { version: '1.31.2', module: 'go.temporal.io/server/cmd' } as const;

export interface ClusterPrograms {
  readonly haproxy: string;
  readonly temporalServer: string;
  readonly temporalSql: string;
  readonly versitygw: string;
}

/** @throws Error that says how to get what is missing */
export async function findClusterPrograms(): Promise<ClusterPrograms> {
  const haproxy = await findOnPath('haproxy', process.env, ['/usr/sbin', '/opt/homebrew/sbin']);
  if (haproxy === null)
    throw new Error('no haproxy on the PATH: apt install haproxy, or brew install haproxy');
  const { version } = temporal;
  const serverModule = `${temporal.module}/server`;
  const sqlModule = `${temporal.module}/tools/sql`;
  return {
    haproxy,
    temporalServer: await ensureGoProgram({
      version,
      module: serverModule,
      name: 'server',
      label: 'temporal-server',
    }),
    temporalSql: await ensureGoProgram({ version, module: sqlModule, name: 'sql', label: 'temporal-sql' }),
    versitygw: await ensureGoProgram(versitygw),
  };
}

/**
 * The programs of a cluster that npm does not bring, kept in the cache: HAProxy from the PATH or out of Debian's package,
 * the others built with Go once.
 */
import { findOnPath } from '../../src/dev/programs.ts';
import { ensureDebianProgram } from '../tools/debian-program.ts';
import { ensureGoProgram } from '../tools/ensure-program.ts';
import { versitygw } from '../tools/versitygw.ts';

const temporal = { version: '1.31.2', module: 'go.temporal.io/server/cmd' } as const;

interface TemporalPrograms {
  readonly temporalServer: string;
  readonly temporalSql: string;
}

export interface ClusterPrograms extends TemporalPrograms {
  readonly haproxy: string;
  readonly versitygw: string;
}

async function findHaproxy(): Promise<string> {
  const found =
    (await findOnPath('haproxy', process.env, ['/usr/sbin', '/opt/homebrew/sbin'])) ??
    (await ensureDebianProgram({ package: 'haproxy', path: 'usr/sbin/haproxy' }));
  if (found === null) throw new Error('no haproxy on the PATH, and no apt-get: brew install haproxy');
  return found;
}

/** @throws Error when there is no Go to build them with */
export async function findTemporalPrograms(): Promise<TemporalPrograms> {
  const { version, module } = temporal;
  const server = { version, module: `${module}/server`, name: 'server', label: 'temporal-server' };
  const sql = { version, module: `${module}/tools/sql`, name: 'sql', label: 'temporal-sql' };
  return { temporalServer: await ensureGoProgram(server), temporalSql: await ensureGoProgram(sql) };
}

/** @throws Error that explains how to get the missing parts */
export async function findClusterPrograms(): Promise<ClusterPrograms> {
  const haproxy = await findHaproxy();
  return { haproxy, ...(await findTemporalPrograms()), versitygw: await ensureGoProgram(versitygw) };
}

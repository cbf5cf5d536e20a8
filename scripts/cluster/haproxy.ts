/** HAProxy before the API and before Temporal's frontends. */
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { haproxyConfiguration } from './haproxy-configuration.ts';
import type { ClusterPlace } from './place.ts';

function isAnswered(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.unref();
    setTimeout(() => socket.destroy(), 1_000).unref();
  });
}

/** Resolves when it takes connections, whether or not there is anybody behind it yet. */
export async function startHaproxy(place: ClusterPlace, program: string): Promise<void> {
  const file = join(place.folder, 'haproxy.cfg');
  await writeFile(file, haproxyConfiguration(place));
  await place.start({
    name: 'haproxy',
    command: program,
    args: ['-db', '-f', file],
    cwd: place.folder,
    env: { PATH: process.env.PATH },
    account: null,
    logFile: join(place.folder, 'logs', 'haproxy.log'),
    stopSignal: 'SIGTERM',
    stopGraceMs: 5_000,
    readyTimeoutMs: 10_000,
    isReady: () => isAnswered(place.ports.api),
  });
}

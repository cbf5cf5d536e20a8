/**
 * Restate's own server (durable, as it is installed, but silent and on ports of its own) and the service that it
 * drives.
 */
import { connect } from 'node:http2';
import { join } from 'node:path';
import { ensureRivals } from '../shared/ensure-rivals.ts';
import type { Place } from '../shared/run-bench.ts';
import { answersAt, describeProcess, findScript } from './bench-process.ts';
import type { Endpoints } from './capabilities.ts';

export interface RestateAddresses {
  readonly ingressUrl: string;
  readonly adminUrl: string;
}

/** The service speaks HTTP/2 only. */
function isListening(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const session = connect(url);
    const end = (isThere: boolean): void => {
      session.destroy();
      resolve(isThere);
    };
    session.once('connect', () => end(true));
    session.once('error', () => end(false));
  });
}

async function startService({ supervisor, dataDir, nextPort }: Place, endpoints: Endpoints): Promise<string> {
  const port = await nextPort();
  const url = `http://127.0.0.1:${port}`;
  await supervisor.start(
    describeProcess({
      dataDir,
      name: 'Restate service',
      program: findScript('restate-service.mjs', JSON.stringify(endpoints), String(port)),
      env: { NODE_ENV: 'production', RESTATE_LOGGING: 'WARN' },
      isReady: () => isListening(url),
    }),
  );
  return url;
}

const serverPackage = `@restatedev/restate-server-${process.platform}-${process.arch}`;

async function startServer({ supervisor, dataDir, nextPort }: Place): Promise<RestateAddresses> {
  const rivals = ensureRivals([serverPackage, '@restatedev/restate-sdk']);
  const at = async (): Promise<string> => `127.0.0.1:${await nextPort()}`;
  const [ingress, admin, fabric] = [await at(), await at(), await at()];
  const addresses = { ingressUrl: `http://${ingress}`, adminUrl: `http://${admin}` };
  const flags = ['--no-logo', '--listen-mode', 'tcp', '--bind-address', fabric, '--node-name', 'bench'];
  await supervisor.start(
    describeProcess({
      dataDir,
      name: 'Restate',
      program: {
        command: join(rivals, serverPackage, 'bin/restate-server'),
        args: [...flags, '--base-dir', join(dataDir, 'restate')],
      },
      env: {
        RESTATE_INGRESS__BIND_ADDRESS: ingress,
        RESTATE_ADMIN__BIND_ADDRESS: admin,
        RESTATE_LOG_FILTER: 'warn',
        RESTATE_DISABLE_TELEMETRY: 'true',
        DO_NOT_TRACK: '1',
      },
      isReady: async () =>
        (await answersAt(`${addresses.adminUrl}/health`)) &&
        (await answersAt(`${addresses.ingressUrl}/restate/health`)),
    }),
  );
  return addresses;
}

export async function startRestate(place: Place, endpoints: Endpoints): Promise<RestateAddresses> {
  const addresses = await startServer(place);
  const uri = await startService(place, endpoints);
  const answer = await fetch(`${addresses.adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri }),
  });
  if (!answer.ok) throw new Error(`Restate refused the service: ${await answer.text()}`);
  return addresses;
}

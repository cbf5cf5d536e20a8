/**
 * Connections to the other side of wrapped capabilities. The service itself is reached wherever it is, and through the
 * proxy that the environment names; files at addresses of outsiders have public addresses, are never asked for through a
 * proxy, since that would resolve their names by itself, and each connection is judged.
 */

import { publicAddresses } from '@capstan/guarded-dial/address-policy';
import { createDialGuard } from '@capstan/guarded-dial/guarded-dial';
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';

/** An answer may take as long as the timeout of the call allows. */
const patience = { headersTimeout: 0, bodyTimeout: 0 } as const;
const connectTimeoutMs = 10_000;
/** A service on this machine is never behind a proxy. */
const thisMachine = ['localhost', '127.0.0.1', '[::1]'];

function read(environment: NodeJS.ProcessEnv, name: string): string | undefined {
  return environment[name] || environment[name.toUpperCase()] || undefined;
}

/** @param environment `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, also in small letters */
export function createServiceAgent(environment: NodeJS.ProcessEnv): Dispatcher {
  const options = { ...patience, connect: { timeout: connectTimeoutMs } };
  const httpProxy = read(environment, 'http_proxy');
  const httpsProxy = read(environment, 'https_proxy') ?? httpProxy;
  const direct = read(environment, 'no_proxy');
  if ((httpProxy ?? httpsProxy) === undefined || direct === '*') return new Agent(options);
  return new EnvHttpProxyAgent({
    ...options,
    // Plain HTTP is passed on as it is: proxies refuse tunnels to port 80.
    proxyTunnel: false,
    httpProxy: httpProxy ?? '',
    httpsProxy: httpsProxy ?? '',
    noProxy: [direct ?? '', ...thisMachine].join(','),
  });
}

export const serviceAgent = createServiceAgent(process.env);

/** Reaches public addresses alone, by a name or not, and judges each connection. */
export const publicAgent: Dispatcher = createDialGuard(publicAddresses).createAgent({
  ...patience,
  connectTimeoutMs,
});

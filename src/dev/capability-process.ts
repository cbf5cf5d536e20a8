/** A capability of this machine as a child of the stack, started as its author would start it. */
import { join } from 'node:path';
import { CapabilityDetail } from '../contracts/capability.ts';
import { findProgram } from './programs.ts';
import type { ChildSpec } from './supervisor/child-process.ts';

/** Where instances register and keep their files. */
export interface StackAccess {
  readonly dataDir: string;
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly mediaUrl: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Where database and stack run on different machines, their clocks differ a little. */
const clockSkewMs = 5_000;

/** Whether an instance of that name has been heard of since then and is in service. */
export async function isRegistered(
  name: string,
  { apiUrl, apiKey }: StackAccess,
  startedAt: Date,
): Promise<boolean> {
  const response = await fetch(`${apiUrl}/v1/capabilities/${name}`, {
    headers: { authorization: `Bearer ${apiKey}` },
    signal: AbortSignal.timeout(2_000),
  });
  if (!response.ok) return false;
  const { instances } = CapabilityDetail.parse(await response.json());
  const since = startedAt.getTime() - clockSkewMs;
  return instances.some(
    ({ state, last_heartbeat_at }) => state === 'up' && new Date(last_heartbeat_at).getTime() >= since,
  );
}

export interface CapabilitySource {
  /** What the stack calls the child. */
  readonly name: string;
  readonly folder: string;
  /** A trial serves on a port of its own and registers nowhere. */
  readonly trialPort?: number;
  readonly isReady: ChildSpec['isReady'];
}

export function describeCapability(source: CapabilitySource, access: StackAccess): ChildSpec {
  const { name, folder, trialPort, isReady } = source;
  const { command, args } = findProgram('cli/main');
  const isTrial = trialPort !== undefined;
  return {
    name,
    command,
    args: [...args, 'capability', 'start', folder, ...(isTrial ? ['--no-register'] : [])],
    cwd: access.dataDir,
    env: {
      ...access.environment,
      ROUTER_URL: access.apiUrl,
      ROUTER_TOKEN: access.apiKey,
      MEDIA_URL: access.mediaUrl,
      HOST: '127.0.0.1',
      PORT: isTrial ? String(trialPort) : undefined,
    },
    account: null,
    logFile: join(access.dataDir, 'logs', `${name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 13_000,
    readyTimeoutMs: 60_000,
    isReady,
  };
}

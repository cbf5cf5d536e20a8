/** The sample capabilities that come with Capstan, each started as its author would start one. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CapabilityDetail } from '../contracts/capability.ts';
import { findProgram } from './programs.ts';
import type { ChildSpec } from './supervisor/child-process.ts';

export const sampleNames = ['concat', 'audio-mix', 'thumbnail'] as const;

export interface SampleOptions {
  readonly dataDir: string;
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly mediaUrl: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Where database and stack run on different machines, their clocks differ a little. */
const clockSkewMs = 5_000;

async function isRegistered(
  name: string,
  { apiUrl, apiKey }: SampleOptions,
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

/** Null when this installation carries no such sample. */
export function describeSample(name: (typeof sampleNames)[number], options: SampleOptions): ChildSpec | null {
  const folder = fileURLToPath(new URL(`../../capabilities/${name}`, import.meta.url));
  if (!existsSync(folder)) return null;
  const { command, args } = findProgram('cli/main');
  return {
    name,
    command,
    args: [...args, 'capability', 'start', folder],
    cwd: options.dataDir,
    env: {
      ...options.environment,
      ROUTER_URL: options.apiUrl,
      ROUTER_TOKEN: options.apiKey,
      MEDIA_URL: options.mediaUrl,
      HOST: '127.0.0.1',
      PORT: undefined,
    },
    account: null,
    logFile: join(options.dataDir, 'logs', `${name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 13_000,
    readyTimeoutMs: 60_000,
    isReady: ({ startedAt }) => isRegistered(name, options, startedAt),
  };
}

import { join } from 'node:path';
import { findProgram } from '../../src/dev/programs.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';

export const capabilityName = 'bench-echo';

export const describeCapability = ({
  dataDir,
  endpoint,
  port,
}: {
  readonly dataDir: string;
  readonly endpoint: string;
  readonly port: number;
}): ChildSpec => {
  const { command, args } = findProgram('../bench/engine/capability');
  return {
    name: 'capability',
    command,
    args: [...args, capabilityName, String(port)],
    cwd: process.cwd(),
    env: process.env,
    account: null,
    logFile: join(dataDir, 'logs', 'capability.log'),
    stopSignal: 'SIGTERM',
    stopGraceMs: 2_000,
    readyTimeoutMs: 30_000,
    isReady: async () => (await fetch(`${endpoint}/health`, { signal: AbortSignal.timeout(2_000) })).ok,
  };
};

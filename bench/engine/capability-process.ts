import type { Place } from '../shared/run-bench.ts';
import { answersAt, describeProcess, findScript } from './bench-process.ts';
import { capabilityKeys, type Endpoints } from './capabilities.ts';

/** One process for all capabilities of the bench. @returns their addresses */
export async function startCapability({ supervisor, dataDir, nextPort }: Place): Promise<Endpoints> {
  const ports: string[] = [];
  for (const _ of capabilityKeys) ports.push(String(await nextPort()));
  const [echo = '', slow = '', kept = ''] = ports.map((port) => `http://127.0.0.1:${port}`);
  const program = findScript('capability.ts', ...ports);
  const isReady = () => answersAt(`${kept}/health`);
  await supervisor.start(describeProcess({ dataDir, name: 'capability', program, isReady }));
  return { echo, slow, kept };
}

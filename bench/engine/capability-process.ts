import type { Place } from '../shared/run-bench.ts';
import { answersAt, describeProcess, findScript } from './bench-process.ts';

export const capabilityName = 'bench-echo';

/** @returns its address */
export async function startCapability({ supervisor, dataDir, nextPort }: Place): Promise<string> {
  const port = await nextPort();
  const endpoint = `http://127.0.0.1:${port}`;
  const program = findScript('capability.ts', capabilityName, String(port));
  const isReady = () => answersAt(`${endpoint}/health`);
  await supervisor.start(describeProcess({ dataDir, name: 'capability', program, isReady }));
  return endpoint;
}

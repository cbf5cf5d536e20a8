/**
 * The process around an instance: SIGTERM or SIGINT stops it in order, a second one at once. The handlers stand
 * before the start begins, so that no signal leaves a registration behind.
 */
import type { RunningInstance } from './start-instance.ts';

const signals = ['SIGTERM', 'SIGINT'] as const;

/** Runs until a signal, then ends the process: 0 when a signal asked for it; 1 when the start failed or the end was forced. */
export async function runUntilSignal(
  start: (signal: AbortSignal) => Promise<RunningInstance>,
  print: (line: string) => void,
): Promise<never> {
  const stopping = new AbortController();
  let instance: RunningInstance | undefined;
  const stopped = new Promise<void>((resolve) => {
    const onSignal = (name: string): void => {
      if (stopping.signal.aborted) {
        instance?.abortCalls();
        process.exit(1);
      }
      print(`${name}: stopping; once more stops at once`);
      stopping.abort(new Error(`stopped by ${name}`));
      resolve();
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
  try {
    instance = await start(stopping.signal);
    await stopped;
    await instance.stop();
  } catch (error) {
    if (stopping.signal.aborted) process.exit(0);
    print(`the instance did not start: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
  process.exit(0);
}

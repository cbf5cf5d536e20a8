/**
 * The process of all wraps of a box: an HTTP server for each. A wrap that fails ends alone. A fault outside of any call
 * is printed, and the wraps continue. `capstan up` starts this process again when it ends, and this process ends with
 * `capstan up`.
 */
import { type RunningInstance, readSettings, startInstance } from '@capstan/capability';
import { reportedFacts } from '@capstan/capability/bootstrap/start-program';
import { readWrapFile } from '@capstan/wrap/wrap-file';
import type { FromWraps, ToWraps, WrapStart } from './wraps-messages.ts';

interface ServedWrap {
  readonly started: Promise<RunningInstance>;
  readonly stopping: AbortController;
}

const instances = new Map<string, ServedWrap>();

function send(message: FromWraps): void {
  process.send?.(message, () => undefined);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** @throws Error when the file has become invalid, or a step of the start fails */
async function serve(
  { name, text, slots, environment, stopMs, ...place }: WrapStart,
  signal: AbortSignal,
): Promise<RunningInstance> {
  const reading = readWrapFile(text, { ...place, environment });
  if ('findings' in reading) throw new Error(reading.findings.map(({ message }) => message).join('; '));
  const capability = { ...reading.capability, max_concurrency: slots ?? reading.capability.max_concurrency };
  const print = (line: string): void => {
    if (!/^\d\/8 /.test(line)) send({ name, is: 'log', line });
  };
  const settings = readSettings({ ...environment, ROUTER_URL: undefined });
  const instance = await startInstance(capability, { settings, print, graceMs: stopMs, signal });
  send({ name, is: 'ready', facts: reportedFacts(capability) });
  return instance;
}

function start(wrap: WrapStart): void {
  const { name } = wrap;
  const stopping = new AbortController();
  const started = serve(wrap, stopping.signal);
  instances.set(name, { started, stopping });
  started.catch((error) => {
    instances.delete(name);
    send({ name, is: 'ended', reason: messageOf(error) });
  });
}

async function stop(name: string): Promise<void> {
  const hosted = instances.get(name);
  hosted?.stopping.abort();
  const instance = await hosted?.started.catch(() => undefined);
  instances.delete(name);
  await instance?.stop();
  if (instance !== undefined) send({ name, is: 'ended', reason: 'stopped' });
}

async function stopAll(): Promise<void> {
  await Promise.all([...instances.keys()].map(stop));
  process.exit(0);
}

process.on('message', (message: ToWraps) => {
  if (message.do === 'start') start(message);
  else void stop(message.name);
});
process.once('SIGTERM', () => void stopAll());
process.once('disconnect', () => void stopAll());
for (const fault of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(fault, (error: unknown) => {
    console.error(
      `a fault outside of a call; the wraps continue: ${error instanceof Error ? error.stack : error}`,
    );
  });
}

/**
 * The workflows, as a worker's sandbox loads them: once, before the first workflow (`processes/bundle-workflows.ts`).
 * No module below may keep state of a workflow outside of its functions.
 *
 * Whenever a promise begins or settles, the SDK compiles a line of code for the sandbox, to find the workflow that the
 * promise belongs to and the stack that made it. It takes the compiler from `Promise.constructor`. This one answers the
 * same two questions without compiling, and knows no stacks: they are not used, and they took a third of the time.
 */
export { escalate } from './escalate.ts';
export { runPipeline } from './run-pipeline.ts';
export { scheduledRun } from './scheduled-run.ts';

/** In place of an error, whose stack the SDK would read. */
class NoStack {}

const answers: Readonly<Record<string, () => unknown>> = {
  'return globalThis.__TEMPORAL_ACTIVATOR__': () => Reflect.get(globalThis, '__TEMPORAL_ACTIVATOR__'),
  'return globalThis.Error': () => NoStack,
};

Object.defineProperty(Promise, 'constructor', {
  value: (code: string) => answers[code] ?? Function(code),
});

export { escalate } from './escalate.ts';
export { runPipeline } from './run-pipeline.ts';
export { scheduledRun } from './scheduled-run.ts';

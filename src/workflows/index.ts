export { escalate } from './escalate.ts';
export { runPipeline } from './run-pipeline.ts';

export { runPipeline } from './run-pipeline.ts';

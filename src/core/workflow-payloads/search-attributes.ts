/**
 * The search attributes of runs and of their ladders in Temporal, with their types. They are created when the stack is set
 * up. A ladder has the pipeline and the project of its run, and no phase: searches by it find runs alone.
 */
export const searchAttributes = {
  PipelineName: 'Keyword',
  PipelineVersion: 'Keyword',
  ProjectId: 'Keyword',
  RunPhase: 'Keyword',
  AwaitingHuman: 'Bool',
} as const;

/** The search attributes of a run in Temporal, with their types. They are created when the stack is set up. */
export const searchAttributes = {
  PipelineName: 'Keyword',
  PipelineVersion: 'Keyword',
  ProjectId: 'Keyword',
  RunPhase: 'Keyword',
  AwaitingHuman: 'Bool',
} as const;

/** The search attributes of a run in Temporal, with their types. They are created when the stack is set up. */
export const searchAttributeTypes = {
  PipelineName: 'KEYWORD',
  PipelineVersion: 'KEYWORD',
  ProjectId: 'KEYWORD',
  RunPhase: 'KEYWORD',
  EscalationLevel: 'INT',
  AwaitingHuman: 'BOOL',
  CostUsd: 'DOUBLE',
} as const;

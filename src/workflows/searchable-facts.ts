/** The searchable facts of a run and of its ladders; written only when one of them changes. */
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';
import { upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { RunOutcome } from '../core/run/machine.ts';
import type { RunPipelineInput } from '../core/workflow-payloads/run-input.ts';

function keyword(name: string) {
  return defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);
}

const awaitingHuman = defineSearchAttributeKey('AwaitingHuman', SearchAttributeType.BOOL);
const runPhase = keyword('RunPhase');
const projectId = keyword('ProjectId');

export function announcePhase(input: RunPipelineInput, phase: RunOutcome | 'running' | 'paused'): void {
  if (input.has_search_attributes) upsertSearchAttributes([{ key: runPhase, value: phase }]);
}

export function announceWaiting(input: RunPipelineInput, isAwaiting: boolean): void {
  if (input.has_search_attributes) upsertSearchAttributes([{ key: awaitingHuman, value: isAwaiting }]);
}

/** Of a ladder by itself: the server knows the attribute if the ladder was started with others. */
export function announceLadderWaiting(isAwaiting: boolean): void {
  const { typedSearchAttributes } = workflowInfo();
  if (typedSearchAttributes.get(projectId) === undefined) return;
  upsertSearchAttributes([{ key: awaitingHuman, value: isAwaiting }]);
}

/** What the ladder of a step is found by. */
export function searchableLadder({
  has_search_attributes,
  project_id,
  pipeline,
  version,
}: RunPipelineInput): { readonly typedSearchAttributes?: TypedSearchAttributes } {
  if (!has_search_attributes) return {};
  return {
    typedSearchAttributes: new TypedSearchAttributes([
      { key: keyword('PipelineName'), value: pipeline },
      { key: keyword('PipelineVersion'), value: version },
      { key: projectId, value: project_id },
    ]),
  };
}

/** Keeps the searchable facts of a run up to date; written only when one of them changes. */
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { upsertSearchAttributes } from '@temporalio/workflow';
import type { RunOutcome } from '../core/run/machine.ts';
import type { RunPipelineInput } from '../core/workflow-payloads/run-input.ts';

const awaitingHuman = defineSearchAttributeKey('AwaitingHuman', SearchAttributeType.BOOL);
const runPhase = defineSearchAttributeKey('RunPhase', SearchAttributeType.KEYWORD);

export function announcePhase(input: RunPipelineInput, phase: RunOutcome | 'running' | 'paused'): void {
  if (input.has_search_attributes) upsertSearchAttributes([{ key: runPhase, value: phase }]);
}

export function announceWaiting(input: RunPipelineInput, isAwaiting: boolean): void {
  if (input.has_search_attributes) upsertSearchAttributes([{ key: awaitingHuman, value: isAwaiting }]);
}

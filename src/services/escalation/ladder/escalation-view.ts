import type { Escalation } from '../../../contracts/escalation.ts';
import { toWireAdvice, toWireAttempt } from '../../../core/ladder/carry-lists.ts';
import { fromNanoUsd } from '../../../core/money/nano-usd.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import type { WebLink } from '../../web-links.ts';

function given<Value, Name extends string>(name: Name, value: Value | null): { [N in Name]?: Value } {
  return (value === null ? {} : { [name]: value }) as { [N in Name]?: Value };
}

/** What the API shows of an escalation. */
export function toEscalation(row: EscalationRow, web: WebLink): Escalation {
  return {
    escalation_id: row.escalation_id,
    job_type: row.job_type,
    escalation_level: row.escalation_level,
    payload: {
      prompt: row.prompt,
      ...(row.has_context ? { context: row.context } : {}),
      repo_context: row.repo_context,
      escalation_history: row.escalation_history.map(toWireAttempt),
      escalation_advice: row.escalation_advice.map(toWireAdvice),
      model_spec: row.model_spec,
      active_skills: [...row.active_skills],
    },
    signals: [...row.signals],
    state: row.state,
    ...(row.has_result ? { result: row.result } : {}),
    ...given('error', row.error),
    ...given('run_id', row.run_id),
    ...given('step_id', row.step_id),
    ...given('item', row.item),
    ...given('previous_id', row.previous_id),
    ...given('review_id', row.review_id),
    ...given('skill_id', row.skill_id),
    max_usd: row.max_usd === null ? null : Number(row.max_usd),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    created_at: row.created_at.toISOString(),
    finished_at: row.finished_at === null ? null : row.finished_at.toISOString(),
    links: {
      self: `/v1/escalations/${row.escalation_id}`,
      ...(row.run_id === null ? {} : { run: `/v1/runs/${row.run_id}` }),
      ...(row.review_id === null ? {} : { review: `/v1/reviews/${row.review_id}` }),
      ...web,
    },
  };
}

import {
  AdviseAnswer,
  AdviseRequest,
  Escalation,
  EscalationRequest,
  ExecuteAnswer,
  ExecuteRequest,
} from '@capstan/core/contracts/escalation';
import {
  adviseCaller,
  createEscalation,
  executeForCaller,
  showEscalation,
} from '../../use-cases/escalation/escalations.ts';
import { isAdmin } from '../../use-cases/skills/stored-skill.ts';
import { json } from '../input.ts';
import { CallerHeaders, callingKeyOf, IdPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

const callErrors = [
  ...(['ceiling_too_low', 'budget_exhausted', 'budget_reserved', 'run_cancelled'] as const),
  ...(['no_instance', 'overloaded', 'capability_failed', 'response_invalid'] as const),
  ...(['connect_failed', 'contact_lost', 'attempt_timeout'] as const),
];

export const escalationRoutes: readonly Route[] = [
  route('POST /execute', {
    operation: 'execute_level',
    tag: 'escalation',
    summary: 'Make one attempt at a job, at a level of the ladder',
    description:
      'Level 0 applies the template of the best skill. Levels 1 to 4 call the model of that level, or of the next level that has one. Level 5 opens a review. A failure carries advice and the level for the next attempt.',
    isLong: true,
    scope: 'escalate',
    rate: 'escalation',
    headers: CallerHeaders,
    body: json(ExecuteRequest, 'data'),
    responses: { 200: ExecuteAnswer },
    errors: callErrors,
    result: (ctx, { caller, headers, body, signal }) => {
      const asked = { key: callingKeyOf(caller, headers), request: body, signal };
      return executeForCaller(ctx, asked, { vouches: isAdmin(caller) });
    },
  }),
  route('POST /advise', {
    operation: 'advise',
    tag: 'escalation',
    summary: 'Get advice after a failure',
    description:
      'The advisor has the requested level; each repetition of the error in `escalation_history` raises it. For 24 hours, the same request gets the same advice and is paid once. `suggested_executor_level` 5 means a review.',
    isLong: true,
    scope: 'escalate',
    rate: 'escalation',
    headers: CallerHeaders,
    body: json(AdviseRequest, 'data'),
    responses: { 200: AdviseAnswer },
    errors: callErrors,
    result: (ctx, { caller, headers, body, signal }) =>
      adviseCaller(ctx, { key: callingKeyOf(caller, headers), request: body, signal }),
  }),
  route('POST /v1/escalations', {
    operation: 'start_escalation',
    tag: 'escalation',
    summary: 'Run the whole ladder for a job, durably',
    scope: 'escalate',
    headers: CallerHeaders,
    body: json(EscalationRequest, 'data'),
    responses: { 202: Escalation },
    handle: async (ctx, { caller, headers, body, signal }) => {
      const asked = { key: callingKeyOf(caller, headers), request: body, signal };
      const escalation = await createEscalation(ctx, asked, { vouches: isAdmin(caller) });
      return { status: 202, headers: { location: escalation.links.self }, body: escalation };
    },
  }),
  route('GET /v1/escalations/{id}', {
    operation: 'get_escalation',
    tag: 'escalation',
    summary: 'Show an escalation with its history and advice',
    scope: 'escalate',
    params: IdPath,
    responses: { 200: Escalation },
    result: (ctx, { caller, params }) => showEscalation(ctx, caller.project_id, params.id),
  }),
];

/** What a person decided about a step that failed, or that nobody did in time. */
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { capabilityOf } from '../core/definition/step-kind.ts';
import { humanLevel } from '../core/ladder/labels.ts';
import { createAttempt } from '../core/ladder/machine.ts';
import { applyRepair } from '../core/repair/operation.ts';
import {
  askPerson,
  type ClimbEnd,
  cancelledEnd,
  described,
  findRepairs,
  inReview,
  type RunInput,
  type StepLadder,
} from './correct-step.ts';
import type { LocalContext } from './local-context.ts';
import { MockFault } from './mock-fault.ts';
import type { MockDecision } from './mocks.ts';

export type Decided = ClimbEnd & { readonly output?: Json };

export async function followDecision(
  context: LocalContext,
  ladder: StepLadder,
  runInput: RunInput,
): Promise<Decided> {
  const { review, unit } = ladder;
  const decision = review?.decision ?? null;
  if (review === null || (decision === null && context.world.time.now() < (review.dueAt ?? Infinity))) {
    return inReview(context, ladder);
  }
  context.journal.log('step.reviewed', unit, { action: decision?.action ?? 'expired' });
  if (decision !== null) return follow(context, ladder, decision, runInput);
  const message = `${ladder.failure.message}; nobody decided in time`;
  return { state: 'failed', error: { code: 'ladder_exhausted', message } };
}

async function follow(
  context: LocalContext,
  ladder: StepLadder,
  decision: MockDecision,
  runInput: RunInput,
): Promise<Decided> {
  requireAction(ladder, decision);
  switch (decision.action) {
    case 'skip':
      return { state: 'skipped' };
    case 'output':
      return { state: 'succeeded', output: decidedOutput(context, ladder, decision.output ?? null) };
    case 'approve':
    case 'edit':
    case 'retry':
      return runDecided(context, ladder, decidedInput(context, ladder, decision), runInput);
    default:
      return { state: 'failed', error: rejection(decision) };
  }
}

export function rejection({ note }: MockDecision): Failure {
  return {
    code: 'review_rejected',
    message: `a person rejected it in a review${note === undefined ? '' : `: ${note}`}`,
  };
}

function requireAction({ step: { definition } }: StepLadder, { action }: MockDecision): void {
  const possible = [
    ...['approve', 'edit', 'retry', 'reject'],
    ...(definition.allow_output === true ? ['output'] : []),
    ...(definition.optional === true ? ['skip'] : []),
  ];
  if (possible.includes(action)) return;
  const message = `the review of step ${definition.id} does not take ${action}; possible are`;
  throw new MockFault(`${message} ${possible.join(', ')}`);
}

interface Finding {
  readonly pointer: string;
  readonly message: string;
}

/** As the API would have refused it. */
function refuse({ step }: StepLadder, what: string, findings: readonly Finding[]): MockFault {
  const seen = findings.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return new MockFault(`the ${what} decided for step ${step.definition.id} is not possible: ${seen}`);
}

function decidedOutput({ world }: LocalContext, ladder: StepLadder, output: Json): Json {
  const faults = world.fleet.checkOutput(capabilityOf(ladder.step.definition), output);
  if (faults.length > 0) throw refuse(ladder, 'output', faults);
  return output;
}

function decidedInput(context: LocalContext, ladder: StepLadder, decision: MockDecision): JsonObject {
  const input = chosenInput(context, ladder, decision);
  const faults =
    input === undefined
      ? [{ pointer: '', message: `there is no such input to ${decision.action}` }]
      : context.world.fleet.findInputFaults(capabilityOf(ladder.step.definition))(input);
  if (input === undefined || (faults.length > 0 && decision.action !== 'retry')) {
    throw refuse(ladder, 'input', faults);
  }
  return input;
}

function chosenInput(
  context: LocalContext,
  ladder: StepLadder,
  { action, input, proposal = 0 }: MockDecision,
): JsonObject | undefined {
  if (action === 'retry') return ladder.current;
  if (action === 'edit') return input;
  const chosen = findRepairs(context, ladder).proposals[proposal];
  return chosen && (applyRepair(ladder.current, chosen.operations) as JsonObject | undefined);
}

/** Run like any other, and asked about again when it does not help. */
async function runDecided(
  context: LocalContext,
  ladder: StepLadder,
  input: JsonObject,
  runInput: RunInput,
): Promise<ClimbEnd> {
  const end = await runInput(ladder, input);
  if (end.kind === 'succeeded') return { state: 'succeeded' };
  if (end.kind === 'cancelled' || end.kind === 'waiting') return cancelledEnd;
  const attempt = createAttempt({ level: humanLevel, ...described(end.error, 0) });
  const history = [...ladder.state.history, attempt];
  const { error } = attempt;
  ladder.state = { ...ladder.state, history, command: { type: 'stop', reason: 'exhausted', error } };
  return askPerson(context, ladder);
}

/** One review: the possible decisions, and the request that a decision makes. */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Review, ReviewAction, ReviewDecision } from '@capstan/core/contracts/review';
import { isEqual } from '@capstan/core/expression/compare';
import { type CeilingAdvice, findCeilingFault } from '../../review/ceiling.ts';

export interface DecisionDraft {
  readonly action: ReviewAction;
  readonly proposal: number;
  /** The text of the corrected input. */
  readonly value: Json;
  /** The text of the answer to a step's question. */
  readonly output: Json;
  readonly text: string;
  readonly usd: string;
  readonly note: string;
  readonly remember: boolean;
}

const preferred: readonly ReviewAction[] = ['approve', 'edit', 'output', 'raise', 'keep', 'retry'];
/** Where money is the matter, it comes first. */
const preferredOfBudget: readonly ReviewAction[] = ['raise'];

function inputOf({ payload }: Review): Json {
  return payload.proposals?.[0]?.input ?? payload.input ?? {};
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text or number of the input that the answer of the same name may confirm. A yes or no is the person's own. */
function proposedBy(input: Json | undefined, name: string, { type }: JsonObject): Json | undefined {
  const value = isObject(input) ? input[name] : undefined;
  const isText = typeof value === 'string' && type === 'string';
  return isText || (typeof value === 'number' && (type === 'number' || type === 'integer'))
    ? value
    : undefined;
}

/** The initial answer: defaults of the schema, then values of the step's input under the same names. */
function answerFor({ schema = {}, input }: Review['payload']): Json {
  if (schema.default !== undefined) return schema.default;
  const properties = isObject(schema.properties) ? schema.properties : {};
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, property]): [string, Json][] => {
      const value = isObject(property) ? (property.default ?? proposedBy(input, name, property)) : undefined;
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Required fields that the answer lacks. */
function missingFields(output: Json, { required }: JsonObject): string[] {
  if (!isObject(output) || !Array.isArray(required)) return [];
  return required.filter((name): name is string => typeof name === 'string' && output[name] === undefined);
}

export function beginDraft(review: Review): DecisionDraft {
  const { actions, payload } = review;
  const hasProposal = (payload.proposals?.length ?? 0) > 0;
  const wanted = review.kind === 'budget' ? preferredOfBudget : preferred;
  const first = wanted.find((action) => actions.includes(action) && (action !== 'approve' || hasProposal));
  return {
    action: first ?? actions[0] ?? 'reject',
    proposal: 0,
    value: inputOf(review),
    output: answerFor(payload),
    text: '',
    usd: '',
    note: '',
    remember: true,
  };
}

/** Actions in the order of their buttons; approving needs a proposal. */
export function offeredActions({ actions, payload }: Review): readonly ReviewAction[] {
  const hasProposal = (payload.proposals?.length ?? 0) > 0;
  return actions.filter((action) => action !== 'approve' || hasProposal);
}

export function toDecision(draft: DecisionDraft, review: Review): ReviewDecision {
  const { action, value, output, text, usd, note, remember, proposal } = draft;
  const common = { action, ...(note.trim() === '' ? {} : { note: note.trim() }) };
  const canRemember = review.kind === 'escalation';
  switch (action) {
    case 'approve':
      return {
        ...common,
        ...(review.payload.proposals === undefined ? {} : { proposal }),
        ...(canRemember ? { remember } : {}),
      };
    case 'edit':
      return review.kind === 'skill'
        ? { ...common, skill: { instructions: text } }
        : { ...common, input: value, ...(canRemember ? { remember } : {}) };
    case 'narrow':
      return {
        ...common,
        skill: { pattern: { error_patterns: text.split('\n').filter((line) => line.trim() !== '') } },
      };
    case 'advise':
      return { ...common, instructions: text };
    case 'output':
      return { ...common, output };
    case 'raise':
      return { ...common, budget_ceiling_usd: Number(usd) };
    case 'merge':
      return { ...common, into: text.trim() };
    default:
      return common;
  }
}

/** The reason why the draft cannot be sent yet; null when it can. */
export function whatIsMissing(
  { action, text, usd, output, value }: DecisionDraft,
  { payload, actions }: Review,
  advice: CeilingAdvice | null = null,
): string | null {
  const fields = action === 'output' ? missingFields(output, payload.schema ?? {}) : [];
  if (fields.length > 0) return `Fill in ${fields.join(', ')}.`;
  const isInput = actions.includes('retry') || actions.includes('raise');
  if (action === 'edit' && isInput && isEqual(value, payload.input ?? null)) {
    return actions.includes('retry')
      ? 'Nothing is changed yet. Retry unchanged sends the same input.'
      : 'Nothing is changed yet.';
  }
  if (action === 'advise' && text.trim() === '') return 'Write what should be done.';
  if (action === 'raise') return findCeilingFault(usd, advice);
  if (action === 'merge' && text.trim() === '') return 'Give the id of the skill that stays.';
  return action === 'narrow' && text.trim() === ''
    ? 'Give the errors that it is for, one pattern a line.'
    : null;
}

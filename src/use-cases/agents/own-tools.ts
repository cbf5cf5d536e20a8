/** The tools that are the same for every project: plans, runs, costs, reviews. */

import type { Scope } from '@capstan/core/contracts/access';
import { CostQuery } from '@capstan/core/contracts/money';
import type { PlanRequest } from '@capstan/core/contracts/plan';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { ReviewDecision, ReviewState } from '@capstan/core/contracts/review';
import { z } from 'zod';
import { readCosts } from '../money/money.ts';
import { planPipeline } from '../plans/plan.ts';
import { decideReview, listReviews, showReview } from '../reviews/reviews.ts';
import { type AgentTool, readArguments, type ToolListing, toJson } from './agent-tool.ts';
import {
  CancelArguments,
  ChosenPipeline,
  callCancelRun,
  callGetRun,
  callStartRun,
  ShowArguments,
  StartArguments,
} from './run-tools.ts';

const PlanArguments = z.strictObject(ChosenPipeline);
const ReviewId = z.string().min(1).max(128);
const ReviewArguments = z.strictObject({
  review_id: ReviewId.optional().meta({ description: 'Show this review with all that a decision needs.' }),
  run_id: z.string().max(128).optional(),
  state: ReviewState.default('open'),
  limit: z.number().int().min(1).max(50).default(20),
});
const DecideArguments = z.strictObject({
  review_id: ReviewId,
  version: z.number().int().min(0).meta({ description: 'The version of the review that you have read.' }),
  decision: ReviewDecision,
});

interface OwnTool {
  readonly title: string;
  readonly description: string;
  readonly scope: Scope;
  readonly input: z.ZodObject;
  readonly effect: 'reads' | 'starts' | 'destroys';
  readonly call: AgentTool['call'];
}

/** Plans are long: without candidates, and with the first findings only. */
const shownFindings = 20;

const ownTools: Readonly<Record<string, OwnTool>> = {
  plan: {
    title: 'Plan a run',
    description:
      'Shows what a run of a pipeline would do and cost now: least, expected and highest cost in USD, the chosen instances with reasons, and problems. Costs nothing and starts nothing. Use it before you start a run.',
    scope: 'pipeline:read',
    input: PlanArguments,
    effect: 'reads',
    call: async (ctx, { caller, args }) => {
      const wish = readArguments(PlanArguments, args) as PlanRequest & { readonly pipeline: string };
      const plan = await planPipeline(ctx, caller, wish);
      const steps = plan.steps.map(({ candidates: _, ...step }) => step);
      return { content: toJson({ ...plan, steps, findings: plan.findings.slice(0, shownFindings) }) };
    },
  },
  start_run: {
    title: 'Start a run',
    description:
      'Starts a run of a stored pipeline with a version, a ceiling for its cost, or an idempotency key. Answers with the ended run, or with its run_id when it takes longer than wait_s.',
    scope: 'run:write',
    input: StartArguments,
    effect: 'starts',
    call: callStartRun,
  },
  get_run: {
    title: 'Show a run',
    description:
      'Shows the state, cost, output, steps and routing decisions of a run, or one of its steps in full. With wait_s it waits for the end.',
    scope: 'run:read',
    input: ShowArguments,
    effect: 'reads',
    call: callGetRun,
  },
  cancel_run: {
    title: 'Cancel a run',
    description: 'Cancels a run. Calls that have begun are paid.',
    scope: 'run:write',
    input: CancelArguments,
    effect: 'destroys',
    call: callCancelRun,
  },
  costs: {
    title: 'Show costs',
    description:
      'Shows what the project has spent today and in a period, by capability, and its daily limit in USD; 0 is no limit.',
    scope: 'cost:read',
    input: CostQuery,
    effect: 'reads',
    call: async (ctx, { caller, args }) => {
      return { content: toJson(await readCosts(ctx, caller, readArguments(CostQuery, args))) };
    },
  },
  list_reviews: {
    title: 'List reviews',
    description:
      'Lists questions that wait for a person, with the actions that each allows; or shows one review in full.',
    scope: 'run:read',
    input: ReviewArguments,
    effect: 'reads',
    call: async (ctx, { caller, args }) => {
      const { review_id, ...query } = readArguments(ReviewArguments, args);
      const { project_id } = caller;
      if (review_id !== undefined) return { content: toJson(await showReview(ctx, project_id, review_id)) };
      return { content: toJson(await listReviews(ctx, project_id, { ...query, order: 'due_at' })) };
    },
  },
  decide_review: {
    title: 'Decide a review',
    description:
      'Decides a review in the name of this key. Read the review first: the decision is refused if it has changed since.',
    scope: 'review:decide',
    input: DecideArguments,
    effect: 'destroys',
    call: async (ctx, { caller, args }) => {
      const order = { ...readArguments(DecideArguments, args), idempotency: null };
      const { review } = await decideReview(ctx, caller, order);
      return { content: toJson(review) };
    },
  },
};

function toTool(name: string, { title, description, scope, input, effect, call }: OwnTool): AgentTool {
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  const inputSchema = { ...(schema as unknown as JsonObject), type: 'object' as const };
  const listing: ToolListing = {
    name,
    title,
    description,
    inputSchema,
    annotations: {
      readOnlyHint: effect === 'reads',
      destructiveHint: effect === 'destroys',
      openWorldHint: effect === 'starts',
    },
  };
  return { listing, scope, call };
}

const tools = new Map(Object.entries(ownTools).map(([name, tool]) => [name, toTool(name, tool)]));

export function listOwnTools(): Iterable<AgentTool> {
  return tools.values();
}

export function findOwnTool(name: string): AgentTool | undefined {
  return tools.get(name);
}

/** Queries for runs, their steps and items, from the URL to services and database. */

import { z } from 'zod';
import { mostItems } from './bounds.ts';
import { Instant, ListQuery, PipelineName } from './primitives.ts';
import { RunState } from './run.ts';
import { Awaiting, StepState } from './run-step.ts';

/** `name=value`, parsed into name and value. */
export const LabelFilter = z
  .string()
  .max(321)
  .regex(/^[^=]{1,64}=/, { error: 'a label filter has the form key=value' })
  .transform((text): readonly [name: string, value: string] => {
    const at = text.indexOf('=');
    return [text.slice(0, at), text.slice(at + 1)];
  });

export const RunQuery = ListQuery.extend({
  pipeline: PipelineName.optional(),
  state: RunState.optional(),
  awaiting: Awaiting.optional().meta({
    description: 'The reason why one of its steps, or of its child runs, is waiting.',
  }),
  q: z.string().min(1).max(128).optional().meta({
    description:
      "Part of the pipeline's name, of a label as `name=value`, or of the run's error as `code: message`; or the begin of the run's id. A page searches at most 10,000 runs, so it may be empty and have a next page.",
  }),
  label: LabelFilter.optional(),
  schedule_id: z.string().max(128).optional(),
  since: Instant.optional(),
  until: Instant.optional(),
  order: z.enum(['newest', 'oldest']).default('newest').meta({
    description: 'oldest, with a state: the run that has been in it longest comes first',
  }),
  parent: z.literal('none').optional().meta({ description: 'none: only top-level runs, without child runs' }),
}).strict();
export type RunQuery = z.infer<typeof RunQuery>;

/** `limit` and `cursor` page the outputs of a step's items. */
export const StepQuery = ListQuery.extend({
  item: z.coerce.number().int().min(0).max(mostItems).default(0).meta({
    description: 'From 1 on; 0 is the step as a whole.',
  }),
}).strict();
export type StepQuery = z.infer<typeof StepQuery>;

export const ItemQuery = ListQuery.extend({
  state: StepState.optional(),
  output: z.literal('none').optional().meta({ description: 'none: without the outputs of the items' }),
}).strict();
export type ItemQuery = z.infer<typeof ItemQuery>;

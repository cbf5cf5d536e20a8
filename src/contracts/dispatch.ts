/** How a step's calls are carried out: by a worker that takes them off a queue, or at once by the one that has the run. */
import { z } from 'zod';
import { CapabilityName, Tags } from './primitives.ts';

/** What a step, or the pipeline's defaults, may ask for. */
export const DispatchWish = z.enum(['auto', 'inline', 'queued']).meta({ id: 'DispatchWish' });
export type DispatchWish = z.infer<typeof DispatchWish>;

const dispatchFields = {
  how: z.enum(['inline', 'queued']),
  /**
   * short, slow: what is known of the instances; unknown: too little is. asked: the definition insists. at_most_once:
   * `retry.max` is 0.
   */
  code: z.enum(['short', 'slow', 'unknown', 'asked', 'at_most_once']),
  /** One sentence for a person. */
  message: z.string(),
  /** Nine of ten calls take at most so long, on the slowest instance that could be chosen; absent when nothing is known. */
  p90_ms: z.number().optional(),
  /** How many calls that is known of; old ones count for less. */
  calls: z.number().int().optional(),
};

export const StepDispatch = z.strictObject(dispatchFields).meta({ id: 'StepDispatch' });
export type StepDispatch = z.infer<typeof StepDispatch>;

/** What was decided for all steps of a run that ask for the same instances and leave it open how. */
export const RouteDispatch = z
  .strictObject({
    capability: CapabilityName,
    capability_version: z.string().optional(),
    tags: Tags.optional(),
    ...dispatchFields,
  })
  .meta({ id: 'RouteDispatch' });
export type RouteDispatch = z.infer<typeof RouteDispatch>;

/** Without words, as it is stored with a run. */
export type DispatchChoice = Omit<StepDispatch, 'message'>;
export type DecidedRoute = Omit<RouteDispatch, 'message'>;

/** What a step asks of its instances, and no more: equal for many steps. */
export type DispatchRoute = Pick<RouteDispatch, 'capability' | 'capability_version' | 'tags'>;

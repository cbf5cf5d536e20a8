/** What the budgets of the day leave to a call that is only thought about. */
import { fromNanoUsd } from '../money/nano-usd.ts';
import type { RouteRequest } from './types.ts';

export type Headroom = Pick<RouteRequest, 'headroomUsd' | 'hidesHeadroom'>;

export interface BudgetsLeft {
  /** Nano-USD; null = no limit. */
  readonly project_nano: string | null;
  readonly global_nano: string | null;
}

/** The tighter one counts. Its figure is hidden when all projects share it. */
export function toHeadroom({ project_nano, global_nano }: BudgetsLeft): Headroom {
  const [own, shared] = [project_nano, global_nano].map((nano) => (nano === null ? null : BigInt(nano)));
  const isShared = shared != null && (own == null || shared < own);
  const least = isShared ? shared : own;
  if (least == null) return { headroomUsd: null };
  return { headroomUsd: Math.max(0, fromNanoUsd(least)), hidesHeadroom: isShared };
}

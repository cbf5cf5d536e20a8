import type { Unit } from '../core/run/drive.ts';

/** For people: which step, and by what. */
export function summaryOf({ step, item }: Unit): string {
  return `${step.id}${item === 0 ? '' : ` [${item}]`} → ${step.capability}`;
}

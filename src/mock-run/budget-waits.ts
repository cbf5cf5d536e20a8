/** Steps that wait for money: one question to a person for all of them, and what follows from the answer. */
import type { LocalContext } from './local-context.ts';
import { stepOf } from './local-context.ts';
import { MockFault } from './mock-fault.ts';
import type { MockReview } from './mock-reviewer.ts';
import type { MockDecision } from './mocks.ts';
import type { UnitName } from './run-journal.ts';

export interface BudgetWaits {
  begin(unit: UnitName): void;
  /** It does not wait any more. @returns whether a person has skipped it */
  take(unit: UnitName): boolean;
}

export function createBudgetWaits(context: LocalContext): BudgetWaits {
  const waiting = new Map<string, UnitName>();
  const skipped = new Set<string>();
  let review: MockReview | null = null;
  const keyOf = ({ id, item }: UnitName): string => `${id}/${item}`;

  const wakeAll = (): void => {
    for (const unit of waiting.values()) context.wake(unit);
  };
  context.budget.onRaise(() => {
    review = null;
    wakeAll();
  });

  const decided = (): void => {
    const decision = review?.decision ?? null;
    review = null;
    if (decision !== null) follow(decision);
  };

  const follow = ({ action, budget_ceiling_usd }: MockDecision): void => {
    switch (action) {
      case 'raise':
        context.budget.scarce().raise(budget_ceiling_usd ?? null);
        break;
      case 'skip':
        for (const [key, unit] of waiting) {
          if (stepOf(context, unit.id).definition.optional === true) skipped.add(key);
        }
        wakeAll();
        break;
      case 'cancel':
        context.cancelRun();
        break;
      default:
        throw new MockFault(`a review of the budget takes raise, skip or cancel, not ${action}`);
    }
  };

  return {
    begin: (unit) => {
      waiting.set(keyOf(unit), unit);
      review ??= context.reviewer.open('budget', null, decided);
    },
    take: (unit) => {
      waiting.delete(keyOf(unit));
      return skipped.delete(keyOf(unit));
    },
  };
}

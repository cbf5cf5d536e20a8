/** Whether the steps of a local run happen, and how often; items are kept for their own inputs. */
import { mostItems } from '../contracts/bounds.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import type { CompiledStep } from '../core/definition/compile/compile-definition.ts';
import { evaluateCondition } from '../core/expression/condition.ts';
import { evaluateTemplate } from '../core/expression/evaluate.ts';
import type { StepVerdict } from '../core/run/machine.ts';
import { type LocalContext, stepOf } from './local-context.ts';
import { explain, fullScope } from './step-scope.ts';

export function decideStep(context: LocalContext, id: string): StepVerdict {
  const { journal } = context;
  const unit = { id, item: 0 };
  const verdict = judge(context, stepOf(context, id));
  switch (verdict.type) {
    case 'skip':
      journal.move(unit, 'skipped', { data: { reason: 'when' } });
      return { type: 'skip' };
    case 'fail':
      journal.move(unit, 'failed', { error: verdict.error });
      return verdict;
    case 'go':
      if (verdict.list === undefined) return { type: 'go' };
      journal.move(unit, 'running', { data: { items: verdict.list.length } });
      journal.open(unit).items = verdict.list;
      return { type: 'go', items: verdict.list.length };
  }
}

type Judged =
  | { readonly type: 'go'; readonly list?: readonly Json[] }
  | { readonly type: 'skip' }
  | { readonly type: 'fail'; readonly error: Failure };

function judge({ scope, journal }: LocalContext, { when, items }: CompiledStep): Judged {
  try {
    if (when !== null && !evaluateCondition(when, fullScope(when, scope, journal))) return { type: 'skip' };
    if (items === null) return { type: 'go' };
    return takeItems(evaluateTemplate(items, fullScope(items, scope, journal)));
  } catch (error) {
    return { type: 'fail', error: explain(error) };
  }
}

function takeItems(list: Json): Judged {
  if (!Array.isArray(list)) return refuse('expression_unresolved', 'for_each.items is no list');
  if (list.length <= mostItems) return { type: 'go', list };
  return refuse(
    'too_many_items',
    `for_each.items has ${list.length} items; at most ${mostItems} are allowed`,
  );
}

function refuse(code: string, message: string): Judged {
  return { type: 'fail', error: { code, message } };
}

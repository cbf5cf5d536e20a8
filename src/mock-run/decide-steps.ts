/** Whether the steps of a local run happen, and how often; items are kept for their own inputs. */
import type { Failure, Json } from '../contracts/primitives.ts';
import type { CompiledStep } from '../core/definition/compile/compile-definition.ts';
import { evaluateCondition } from '../core/expression/condition.ts';
import { evaluateTemplate } from '../core/expression/evaluate.ts';
import { refuseStep, toItems } from '../core/run/decide-step.ts';
import type { StepVerdict } from '../core/run/machine.ts';
import { type LocalContext, stepOf } from './local-context.ts';
import { evaluateWith, fullScope } from './step-scope.ts';

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
  if (when !== null) {
    const happens = evaluateWith(when, evaluateCondition, fullScope(when, scope, journal));
    if ('error' in happens) return refuseStep('when', happens.error);
    if (!happens.value) return { type: 'skip' };
  }
  if (items === null) return { type: 'go' };
  const value = evaluateWith(items, evaluateTemplate, fullScope(items, scope, journal));
  const list = 'error' in value ? value : toItems(value.value);
  return 'error' in list ? refuseStep('for_each.items', list.error) : { type: 'go', list: list.value };
}

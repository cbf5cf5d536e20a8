/** What a local run leaves: the definition's `output`, else the outputs of the steps that no other waits for, by id. */
import type { Failure, Json } from '../contracts/primitives.ts';
import type { LocalContext } from './local-context.ts';
import { evaluate, scopeOfSteps } from './step-scope.ts';

export function evaluateOutput({
  compiled,
  scope,
  journal,
}: LocalContext): { readonly value: Json } | { readonly error: Failure } {
  const { output, steps } = compiled;
  if (output !== null) {
    const end = evaluate(output, scope, journal);
    if ('value' in end) return end;
    return { error: { ...end.error, message: `output: ${end.error.message}` } };
  }
  const awaited = new Set(steps.flatMap(({ dependencies }) => dependencies));
  const last = steps.flatMap(({ definition }, index) => (awaited.has(index) ? [] : [definition.id]));
  const known = scopeOfSteps(journal, last);
  return { value: Object.fromEntries(last.map((id) => [id, known[id]?.output ?? null])) };
}

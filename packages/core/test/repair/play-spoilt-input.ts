import { canonicalJson } from '../../src/json/values.ts';
import { applyRepair, proposeRepairs } from '../../src/repair/propose-repairs.ts';
import { inputSchemas } from './broken-inputs.ts';
import { inputChecks } from './play-broken-input.ts';
import type { SpoiltInput } from './spoilt-inputs.ts';

/** right: applied, as it was before the mistake. wrong: applied, and something else. shown: among the proposals. */
export type SpoiltOutcome = 'right' | 'wrong' | 'shown' | 'left';

export function playSpoiltInput({ capability, input, answer }: SpoiltInput): SpoiltOutcome {
  const errorsOf = inputChecks[capability].find;
  const { proposals, applicable } = proposeRepairs({ schema: inputSchemas[capability], input, errorsOf });
  const isAnswer = (operations: (typeof proposals)[number]['operations']): boolean => {
    const made = applyRepair(input, operations);
    return answer !== null && made !== undefined && canonicalJson(made) === canonicalJson(answer);
  };
  if (applicable !== null) return isAnswer(applicable.operations) ? 'right' : 'wrong';
  return proposals.some(({ operations }) => isAnswer(operations)) ? 'shown' : 'left';
}

/** Pairs the items of a repeated step with those of the old run, so that each keeps the work of its own. */
import type { StepState } from '../contracts/run-step.ts';

/** An item of the old run that has begun. */
export interface FormerItem {
  /** From 1 on. */
  readonly item: number;
  readonly state: StepState;
  /** Stands for its input: equal inputs have equal texts. */
  readonly input: string;
}

/** States of items that do not happen again. A person may have skipped one. */
const keptStates: ReadonlySet<StepState> = new Set(['succeeded', 'reused', 'skipped']);

export function isKeptItem({ state }: Pick<FormerItem, 'state'>): boolean {
  return keptStates.has(state);
}

/**
 * Pairs by input, each former item at most once: those with a result first, and of equal ones the one at the same
 * place.
 * @param inputs of the new items, in order; undefined: it cannot be evaluated
 * @returns the former item of each new one
 */
export function pairItems(
  former: readonly FormerItem[],
  inputs: readonly (string | undefined)[],
): (number | undefined)[] {
  const pairs: (number | undefined)[] = inputs.map(() => undefined);
  for (const isKept of [true, false]) {
    const group = former.filter((one) => isKeptItem(one) === isKept);
    const elsewhere = new Map<string, number[]>();
    for (const { item, input } of group) {
      if (inputs[item - 1] === input && pairs[item - 1] === undefined) pairs[item - 1] = item;
      else addTo(elsewhere, input, item);
    }
    for (const [index, input = ''] of inputs.entries()) pairs[index] ??= elsewhere.get(input)?.shift();
  }
  return pairs;
}

function addTo(lists: Map<string, number[]>, input: string, item: number): void {
  const list = lists.get(input);
  if (list === undefined) lists.set(input, [item]);
  else list.push(item);
}

/** An item of the new run with the one of the old run whose work it keeps. */
export interface ItemPair {
  readonly item: number;
  readonly former: number;
}

/**
 * The places of items whose list is the output of another step, by former item: equal elements give equal inputs.
 * @param listed what that step keeps
 * @param countsItems an input has `index`, so only an item at the same place has an equal one
 */
export function placeListed(listed: readonly ItemPair[], countsItems: boolean): ReadonlyMap<number, number> {
  const usable = listed.filter(({ item, former }) => !countsItems || item === former);
  return new Map(usable.map(({ item, former }) => [former, item]));
}

/** What today's plan expects, in words: nothing is said by a picture alone. */
import { formatDuration, formatUsd } from '../shared/format.ts';
import type { Remainder, StepGhost } from './ghost-model.ts';

function describeExtent({ from, to, expected_usd, isOfOneItem, isIdle, isOpenEnded }: StepGhost): string {
  if (isIdle && isOpenEnded) return 'for as long as a person takes';
  const time = `for ${formatDuration(to - from)}`;
  const money = expected_usd === 0 ? '' : `, ${formatUsd(expected_usd)}`;
  return `${time}${money}${isOfOneItem ? ' for each item' : ''}`;
}

/** `in 20 s, for 3.2 s, 0.01 USD`; of a step that has begun `planned for 3.2 s, 0.01 USD`. */
export function describeGhost(ghost: StepGhost, now: number): string {
  if (ghost.hasBegun) return `planned ${describeExtent(ghost)}`;
  const begin = ghost.from - now < 1_000 ? 'next' : `in ${formatDuration(ghost.from - now)}`;
  return `${ghost.isSure ? '' : 'perhaps '}${begin}, ${describeExtent(ghost)}`;
}

function describeEnd({ until, isOpenEnded }: Remainder, now: number): string {
  if (until - now >= 1_000) {
    return `; all ends in ${formatDuration(until - now)}${isOpenEnded ? ' at the earliest' : ''}`;
  }
  return isOpenEnded ? '; when all ends depends on what is waited for' : '';
}

/** `By today's plan 3 steps to come, for 0.04 USD; all ends in 2 min`; null where there is nothing to expect. */
export function describeRemainder(remainder: Remainder, now: number): string | null {
  const { steps, usd, until, isOpenEnded } = remainder;
  if (steps === 0 && until <= now && !isOpenEnded) return null;
  const toCome = steps === 0 ? 'no step' : `${steps} ${steps === 1 ? 'step' : 'steps'}`;
  const money = steps === 0 ? '' : `, for ${formatUsd(usd)}`;
  return `By today's plan ${toCome} to come${money}${describeEnd(remainder, now)}`;
}

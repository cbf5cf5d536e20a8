/** The expectation of today's plan in words, so that no picture is the only source. */
import type { Awaiting } from '@capstan/core/contracts/run-step';
import { formatDuration, formatUsd } from '../shared/format.ts';
import { awaitingWords } from '../shared/state.ts';
import type { Remainder, StepGhost } from './ghost-model.ts';

function describeExtent({ from, to, expected_usd, isOfOneItem, isIdle, isOpenEnded }: StepGhost): string {
  if (isIdle && isOpenEnded) return 'until a person decides';
  const time = `for ${formatDuration(to - from)}`;
  const money = expected_usd === 0 ? '' : `, ${formatUsd(expected_usd)}`;
  return `${time}${money}${isOfOneItem ? ' for each item' : ''}`;
}

/** `in 20 s, for 3.2 s, $0.01`; for a step that has begun `planned for 3.2 s, $0.01`. */
export function describeGhost(ghost: StepGhost, now: number): string {
  if (ghost.hasBegun) return `planned ${describeExtent(ghost)}`;
  const begin = ghost.from - now < 1_000 ? 'next' : `in ${formatDuration(ghost.from - now)}`;
  return `${ghost.isSure ? '' : 'perhaps '}${begin}, ${describeExtent(ghost)}`;
}

/** Each after `depends on`. */
const endWords: Readonly<Record<Awaiting, string>> = { ...awaitingWords, review: 'a review' };

function describeEnd({ until, isOpenEnded, awaits }: Remainder, now: number): string {
  if (until - now >= 1_000) {
    return `; estimated finish in ${formatDuration(until - now)}${isOpenEnded ? ' at the earliest' : ''}`;
  }
  if (!isOpenEnded) return '';
  return `; the finish depends on ${awaits === undefined ? 'several waits' : endWords[awaits]}`;
}

/** `3 steps planned, $0.04; estimated finish in 2 min`; null when nothing is expected. */
export function describeRemainder(remainder: Remainder, now: number): string | null {
  const { steps, usd, until, isOpenEnded } = remainder;
  if (steps === 0 && until <= now && !isOpenEnded) return null;
  const planned =
    steps === 0
      ? 'No further steps planned'
      : `${steps} ${steps === 1 ? 'step' : 'steps'} planned, ${formatUsd(usd)}`;
  return `${planned}${describeEnd(remainder, now)}`;
}

/** The look of a state: an icon, a word and a tone. Colour is never the only sign. */
import type { InstanceState } from '@capstan/core/contracts/capability';
import type { ReviewState } from '@capstan/core/contracts/review';
import type { RunState } from '@capstan/core/contracts/run';
import type { Awaiting, StepState } from '@capstan/core/contracts/run-step';
import type { ConditionKind } from '@capstan/core/run/run-status';
import type { IconName } from './icon-names.ts';

export type Tone = 'running' | 'done' | 'failed' | 'waiting' | 'person' | 'quiet';

export interface StateLook {
  readonly icon: IconName;
  readonly word: string;
  readonly tone: Tone;
}

function look(icon: IconName, word: string, tone: Tone): StateLook {
  return { icon, word, tone };
}

export type ShownState = RunState | StepState | InstanceState | ReviewState | 'retired' | 'active';

export const stateLooks: Readonly<Record<ShownState, StateLook>> = {
  queued: look('circle-dashed', 'queued', 'quiet'),
  pending: look('circle-dashed', 'pending', 'quiet'),
  ready: look('circle-dot', 'ready', 'quiet'),
  running: look('loader-circle', 'running', 'running'),
  retrying: look('rotate-cw', 'retrying', 'waiting'),
  waiting: look('hourglass', 'waiting', 'waiting'),
  in_review: look('user-round', 'in review', 'person'),
  paused: look('circle-pause', 'paused', 'waiting'),
  cancelling: look('circle-slash', 'cancelling', 'quiet'),
  succeeded: look('circle-check', 'succeeded', 'done'),
  failed: look('circle-x', 'failed', 'failed'),
  unknown: look('circle-question-mark', 'unknown', 'failed'),
  skipped: look('circle-slash', 'skipped', 'quiet'),
  cancelled: look('ban', 'cancelled', 'quiet'),
  reused: look('recycle', 'reused', 'done'),
  up: look('circle-check', 'up', 'done'),
  warming: look('loader-circle', 'warming up', 'waiting'),
  suspect: look('circle-question-mark', 'suspect', 'waiting'),
  down: look('circle-x', 'down', 'failed'),
  evicted: look('circle-slash', 'evicted', 'quiet'),
  quarantined: look('triangle-alert', 'quarantined', 'failed'),
  draining: look('hourglass', 'draining', 'waiting'),
  deregistered: look('circle-slash', 'deregistered', 'quiet'),
  open: look('circle-dot', 'open', 'person'),
  claimed: look('user-round', 'claimed', 'running'),
  resolved: look('circle-check', 'resolved', 'done'),
  expired: look('hourglass', 'expired', 'failed'),
  active: look('circle-check', 'active', 'done'),
  retired: look('circle-slash', 'retired', 'quiet'),
};

/** The condition of a run or a step, derived in core/run/run-status.ts. */
export const conditionLooks: Readonly<Record<ConditionKind, Omit<StateLook, 'word'>>> = {
  failed: { icon: 'circle-x', tone: 'failed' },
  cancelled: { icon: 'ban', tone: 'quiet' },
  called_off: { icon: 'circle-slash', tone: 'quiet' },
  partly: { icon: 'triangle-alert', tone: 'waiting' },
  succeeded: { icon: 'circle-check', tone: 'done' },
  stalled: { icon: 'triangle-alert', tone: 'failed' },
  cancelling: { icon: 'circle-slash', tone: 'quiet' },
  review: { icon: 'user-round', tone: 'person' },
  budget: { icon: 'coins', tone: 'waiting' },
  capability: { icon: 'boxes', tone: 'waiting' },
  paused: { icon: 'circle-pause', tone: 'quiet' },
  retrying: { icon: 'rotate-cw', tone: 'waiting' },
  run: { icon: 'hourglass', tone: 'quiet' },
  slot: { icon: 'hourglass', tone: 'waiting' },
  retry: { icon: 'rotate-cw', tone: 'waiting' },
  callback: { icon: 'hourglass', tone: 'running' },
  event: { icon: 'hourglass', tone: 'waiting' },
  time: { icon: 'hourglass', tone: 'running' },
  queued: { icon: 'circle-dashed', tone: 'quiet' },
  running: { icon: 'loader-circle', tone: 'running' },
};

const unheardOf = look('circle-question-mark', 'not known here', 'quiet');

/** A newer server may have other states. */
export function lookOf(state: string): StateLook {
  return stateLooks[state as ShownState] ?? { ...unheardOf, word: state };
}

/** Words after `waiting for`. */
export const awaitingWords: Readonly<Record<Awaiting, string>> = {
  review: 'review',
  budget: 'budget',
  capability: 'an instance',
  time: 'a time',
  run: 'a child run',
  slot: 'a free slot',
  retry: 'its next attempt',
  callback: 'a later answer',
  event: 'an event',
};

export const toneText: Readonly<Record<Tone, string>> = {
  running: 'text-running',
  done: 'text-done',
  failed: 'text-failed',
  waiting: 'text-waiting',
  person: 'text-person',
  quiet: 'text-quiet',
};

export const toneFill: Readonly<Record<Tone, string>> = {
  running: 'bg-running',
  done: 'bg-done',
  failed: 'bg-failed',
  waiting: 'bg-waiting',
  person: 'bg-person',
  quiet: 'bg-line-strong',
};

export const toneSoft: Readonly<Record<Tone, string>> = {
  running: 'bg-running-soft',
  done: 'bg-done-soft',
  failed: 'bg-failed-soft',
  waiting: 'bg-waiting-soft',
  person: 'bg-person-soft',
  quiet: 'bg-quiet-soft',
};

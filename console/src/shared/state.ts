/** What a state looks like: an icon, a word and a tone. Colour never says it alone. */
import type { InstanceState } from '../../../src/contracts/capability.ts';
import type { ReviewState } from '../../../src/contracts/review.ts';
import type { Awaiting, RunState, StepState } from '../../../src/contracts/run.ts';
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

const unheardOf = look('circle-question-mark', 'not known here', 'quiet');

/** A newer server may name others. */
export function lookOf(state: string): StateLook {
  return stateLooks[state as ShownState] ?? { ...unheardOf, word: state };
}

export const awaitingWords: Readonly<Record<Awaiting, string>> = {
  review: 'a person',
  budget: 'money',
  capability: 'an instance',
  time: 'a moment',
  run: 'a run of its own',
};

/** `waits for money and a person` */
export function describeAwaiting(awaiting: readonly Awaiting[]): string {
  const words = awaiting.map((one) => awaitingWords[one]);
  const last = words.at(-1) ?? '';
  return words.length < 2 ? `waits for ${last}` : `waits for ${words.slice(0, -1).join(', ')} and ${last}`;
}

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

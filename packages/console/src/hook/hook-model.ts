/** Hooks and their deliveries in words. */
import type {
  Hook,
  HookDelivery,
  HookOutcome,
  HookReceipt,
  HookSignature,
} from '@capstan/core/contracts/hook';
import type { Tone } from '../shared/state.ts';

export const signatureWords: Readonly<Record<HookSignature, string>> = {
  github: 'signed as by GitHub',
  standard: 'signed as by Standard Webhooks',
  slack: 'signed as by Slack',
  bearer: 'with the secret as a bearer',
};

interface ShownEnd {
  readonly text: string;
  readonly tone: Tone;
}

const ends: Readonly<Record<HookOutcome, ShownEnd>> = {
  started: { text: 'started a run', tone: 'done' },
  repeated: { text: 'repeats an earlier delivery', tone: 'quiet' },
  filtered: { text: 'left out by the filter', tone: 'quiet' },
  answered: { text: 'a check of the address, answered', tone: 'quiet' },
  failed: { text: 'gave no job', tone: 'failed' },
  refused: { text: 'its run was refused', tone: 'failed' },
};

const saidByOutcome: ReadonlySet<HookOutcome> = new Set(['started', 'repeated', 'filtered']);

/** What became of a delivery, and why if the outcome does not show it. */
export function describeReceived({ outcome, reason }: Pick<HookReceipt, 'outcome' | 'reason'>): ShownEnd {
  const { text, tone } = ends[outcome];
  return { text: reason === null || saidByOutcome.has(outcome) ? text : `${text}: ${reason}`, tone };
}

/** Requests that proved no sender; null: there are none. */
export function describeUnsigned({ refused }: Pick<Hook, 'refused'>): string | null {
  if (refused === null) return null;
  const requests = refused.count === 1 ? '1 request proved' : `${refused.count} requests proved`;
  return `${requests} no sender, the latest: ${refused.reason}`;
}

/** A failed delivery can be mended by its hook, or by its pipeline; the others would start a second run. */
export function describeReplay({ outcome }: Pick<HookDelivery, 'outcome'>): string {
  return outcome === 'failed' || outcome === 'refused'
    ? 'Sends it again, by the settings of the hook as they are now'
    : 'Sends it again, by the settings of the hook as they are now: it starts another run';
}

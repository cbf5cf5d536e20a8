/** The way of a call, and the states of its attempts: the driver of a call with every claim and every outcome. */

import { type CallPorts, driveCall } from '@capstan/core/call/drive-call';
import { judgeOutcome } from '@capstan/core/call/judge';
import type { CallOutcome } from '@capstan/core/call/outcome';
import { defaultRetry, maxInstances } from '@capstan/core/call/retry';
import type { ClaimEnd, ClaimedCall, RoutedCall } from '@capstan/core/call/types';
import { CancelSource } from '@capstan/core/cancellation';
import type { Decision } from '@capstan/core/contracts/decision';
import { AttemptState } from '@capstan/core/contracts/run-step';
import { type Arrow, drawStates, groupBy, joinNames, outside } from './diagram.ts';

const message = '';
const outcomes: { readonly [Kind in CallOutcome['kind']]: CallOutcome & { readonly kind: Kind } } = {
  answered: { kind: 'answered', body: {} },
  rejected: { kind: 'rejected', status: 422, message },
  malformed: { kind: 'malformed', message },
  output_invalid: { kind: 'output_invalid', message },
  too_large: { kind: 'too_large', limitBytes: 1 },
  failed: { kind: 'failed', status: 500, message },
  invalid: { kind: 'invalid', message },
  overloaded: { kind: 'overloaded', status: 503, retryAfterMs: null },
  not_sent: { kind: 'not_sent', message },
  lost: { kind: 'lost', message },
  timeout: { kind: 'timeout', timeoutMs: 1 },
  abandoned: { kind: 'abandoned' },
  cancelled: { kind: 'cancelled' },
  exhausted: { kind: 'exhausted' },
  unsent: { kind: 'unsent' },
  withheld: { kind: 'withheld' },
};

/** `cached` is the state of an attempt that makes no call. */
const openStates = ['reserved', 'dispatched'] as const;

export function drawAttempt(judge: typeof judgeOutcome = judgeOutcome): string {
  const facts = [0, defaultRetry.max].flatMap((retryMax) => [
    { countedBefore: 0, retryMax },
    { countedBefore: retryMax, retryMax },
  ]);
  const ends = Object.values(outcomes).flatMap((outcome) =>
    facts.flatMap((each) =>
      openStates.map((from) => ({ from, to: judge(outcome, each).attemptState, label: outcome.kind })),
    ),
  );
  const reached = new Set<string>(ends.map(({ to }) => to));
  const starts = AttemptState.options
    .filter((state) => !reached.has(state))
    .map((to) => ({ from: outside, to, label: '' }));
  return drawStates([...starts, ...ends], { name: 'open', members: openStates });
}

const decision = { decision_id: 'dec', reason: '' } as unknown as Decision;
const none = { kind: 'none', decision, error: { code: 'no_instance', message }, retryAfterMs: 0 } as const;
const otherClaims = {
  'no instance now': { ...none, isFinal: false },
  'no instance ever': { ...none, isFinal: true },
  answered: { kind: 'answered', output: {} },
  closed: { kind: 'closed' },
} as const satisfies Record<string, ClaimEnd<ClaimedCall>>;

/** A call, and the facts of its story. */
interface Play {
  /** The reason why it differs from the plain story; empty for that. */
  readonly reason?: string;
  readonly outcome?: CallOutcome;
  /** Instances that its claims find. Default: 1. */
  readonly found?: number;
  /** The claim after them. */
  readonly otherwise?: keyof typeof otherClaims;
  readonly counted?: number;
  readonly isAccepted?: boolean;
  readonly call?: Partial<RoutedCall>;
}

const cancelled = new CancelSource();
cancelled.abort('cancelled');
const unstored = { stored: Promise.resolve(false), onAnswered: () => undefined };

/** Each with every outcome. A play with a reason adds only what the ones before it do not show. */
const settings: readonly Play[] = [
  {},
  { reason: 'last of retry.max', counted: defaultRetry.max },
  { reason: 'retry.max 0', call: { retry: { ...defaultRetry, max: 0 } } },
  { reason: 'third instance', found: maxInstances },
  { reason: 'retry.invalid_output', call: { retry: { ...defaultRetry, invalidOutput: 1 } } },
  { reason: 'if it resends', call: { resendsWithinMs: 1_000 } },
];

const plays: readonly Play[] = [
  ...settings.flatMap((play) =>
    Object.values(outcomes)
      .filter(({ kind }) => kind !== 'withheld')
      .map((outcome) => ({ ...play, outcome })),
  ),
  ...(Object.keys(otherClaims) as (keyof typeof otherClaims)[]).map((otherwise) => ({ found: 0, otherwise })),
  { reason: 'while cancelled', found: 0, call: { signal: cancelled } },
  { counted: defaultRetry.max + 1 },
  { reason: 'retry.max 0', counted: 1, call: { retry: { ...defaultRetry, max: 0 } } },
  { call: { batch: unstored } },
  { isAccepted: false },
];

function aClaim(at: number, counted: number): ClaimedCall {
  const instance = { instance_id: `i${at}`, endpoint: '', cost_type: 'free', rate_usd: 0 };
  const facts = { number: 1, counted, timeoutMs: 1, reserved: 0n, risk: 0n };
  return { kind: 'claimed', instance, decision, ...facts } as unknown as ClaimedCall;
}

function aCall(part: Partial<RoutedCall> = {}): RoutedCall {
  const route = { capability: 'c', versionRange: null, tags: [], ceilingUsd: null, timeoutMs: 1_000 };
  const call = { route, retry: defaultRetry, round: 1, signal: new CancelSource() };
  return { ...(call as unknown as RoutedCall), ...part };
}

type Drive = typeof driveCall<RoutedCall, ClaimedCall>;

/** The ports that a driver uses, one after the other, and the end that it reaches. */
async function follow(drive: Drive, play: Play): Promise<Arrow[]> {
  const { outcome = outcomes.answered, found = 1, otherwise = 'no instance now', isAccepted = true } = play;
  const arrows: Arrow[] = [];
  let here = outside;
  let reached = '';
  const move = (to: string): void => {
    arrows.push({ from: here, to, label: reached });
    here = to;
  };
  let claims = 0;
  const ports: CallPorts<RoutedCall, ClaimedCall> = {
    claim: async () => {
      move('claim');
      claims += 1;
      reached = claims > found ? otherwise : 'claimed';
      return claims > found ? otherClaims[otherwise] : aClaim(claims, play.counted ?? 0);
    },
    hold: () => () => undefined,
    deliver: async () => {
      move('send');
      reached = '';
      return { outcome, durationMs: 1 };
    },
    settle: async (_, __, { delivery }) => {
      if (here === 'claim') reached = delivery.outcome.kind;
      move('settle');
      reached = isAccepted ? delivery.outcome.kind : 'not accepted';
      return isAccepted;
    },
    transientTexts: [],
    nowMs: () => 0,
    random: () => 0,
  };
  const { kind } = await drive(ports, aCall(play.call));
  move(kind);
  return [...arrows, { from: kind, to: outside, label: '' }];
}

/** One arrow for all labels that the reason leads to. */
function giveReason(arrows: readonly Arrow[], reason: string): Arrow[] {
  return groupBy(arrows, ({ from, to }) => `${from} ${to}`).flatMap(([first, ...others]) => {
    if (first === undefined || first.label === '') return first ?? [];
    const labels = [first, ...others].map(({ label }) => label);
    return { ...first, label: `${reason} – ${joinNames(labels)}` };
  });
}

export async function drawCall(drive: Drive = driveCall): Promise<string> {
  const arrows: Arrow[] = [];
  const known = new Set<string>();
  for (const group of groupBy(plays, ({ reason = '' }) => reason)) {
    const followed = (await Promise.all(group.map((play) => follow(drive, play)))).flat();
    const added = followed.filter((arrow) => {
      const name = Object.values(arrow).join(' ');
      return !known.has(name) && known.add(name);
    });
    const reason = group[0]?.reason;
    arrows.push(...(reason === undefined ? added : giveReason(added, reason)));
  }
  const ends = arrows.filter(({ to }) => to === outside);
  return drawStates([...arrows.filter(({ to }) => to !== outside), ...ends]);
}

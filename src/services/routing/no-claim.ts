/** What it means for a call that no instance took it. */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { BudgetRefusal } from '../../contracts/money.ts';
import type { Json } from '../../contracts/primitives.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Choice, InstanceSnapshot } from '../../core/routing/types.ts';
import type { BudgetShortage } from '../../db/attempt/attempt.ts';
import type { ClaimEnd } from './claim-instance.ts';

export interface NoClaim {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: Json;
  /** Time does not cure it. */
  readonly isFinal: boolean;
  /** When it may succeed. */
  readonly retryAfterMs: number;
}

type None = ClaimEnd & { kind: 'none' };

/** For a slot or an instance; longer only where it is known. */
const soonMs = 500;

export function explainNoClaim({ choice, decision, refusals, shortage, nowMs }: None): NoClaim {
  const { best, verdicts, minimumUsd, reopensAtMs } = choice;
  const isTemporary = mayComeBack(choice);
  const known = { decision: decision as unknown as Json };
  const end = (
    code: ErrorCode,
    message: string,
    part: { isFinal: boolean; retryAfterMs?: number; details?: object },
  ): NoClaim => ({
    code,
    message,
    isFinal: part.isFinal,
    retryAfterMs: part.retryAfterMs ?? soonMs,
    details: { ...part.details, ...known } as Json,
  });

  if (best !== null || verdicts.has('lost_claim')) {
    return end('overloaded', decision.reason, { isFinal: false });
  }
  if (verdicts.has('input_invalid') && refusals.length > 0 && !isTemporary) {
    const findings = refusals.map(({ pointer, message }) => `${pointer || '/'} ${message}`);
    const message = `the input does not match the input schema: ${[...new Set(findings)].join('; ')}`;
    return end('input_invalid', message, { isFinal: true, details: { errors: refusals } });
  }
  if (verdicts.has('over_budget') && shortage !== null && !isTemporary) {
    return explainShortage(shortage, minimumUsd ?? 0, end);
  }
  if (verdicts.has('over_ceiling') && !isTemporary) {
    const details = { minimum_usd: minimumUsd };
    return end('ceiling_too_low', decision.reason, { isFinal: true, details });
  }
  const retryAfterMs = reopensAtMs === null ? soonMs : Math.max(soonMs, reopensAtMs - nowMs);
  return end('no_instance', decision.reason, { isFinal: false, retryAfterMs });
}

/**
 * Whether an instance that rests could take the call when it is back: one that is free, or whose price was looked at
 * and found right (an open breaker is the last reason that is given), and that is not known to refuse the input.
 */
export function mayComeBack({ excluded }: Choice): boolean {
  const specOf = ({ name, version }: InstanceSnapshot): string => `${name} ${version}`;
  const refusing = excluded.filter(({ verdict }) => verdict === 'input_invalid');
  const refused = new Set(refusing.map(({ instance }) => instance.spec_digest));
  const refusedVersions = new Set(refusing.map(({ instance }) => specOf(instance)));
  // The spec of one that died young was never read: it is taken to be that of its version.
  const refuses = (instance: InstanceSnapshot): boolean =>
    instance.spec_digest === null ? refusedVersions.has(specOf(instance)) : refused.has(instance.spec_digest);
  return excluded.some(
    ({ verdict, instance }) =>
      (verdict === 'breaker_open' || (verdict === 'down' && instance.rate_usd === 0)) && !refuses(instance),
  );
}

const nameOf = { run: 'the run', project: 'the project’s day', global: 'the day of all projects' };

/** 429 when it would fit once calls under way have settled for nothing; else 402. */
function explainShortage(
  { scope, run_id, resets_at, ...nano }: BudgetShortage,
  minimumUsd: number,
  end: (code: ErrorCode, message: string, part: { isFinal: boolean; details: object }) => NoClaim,
): NoClaim {
  const [limit_usd, spent_usd, reserved_usd] = [nano.limit_nano, nano.spent_nano, nano.reserved_nano].map(
    (text) => fromNanoUsd(BigInt(text)),
  ) as [number, number, number];
  const details: BudgetRefusal = {
    scope,
    ...(run_id === null ? {} : { run_id }),
    limit_usd,
    spent_usd,
    reserved_usd,
    minimum_usd: minimumUsd,
    resets_at: resets_at === null ? null : new Date(resets_at).toISOString(),
  };
  const wouldFit = spent_usd + minimumUsd <= limit_usd;
  const message = `the budget of ${nameOf[scope]} has no room for ${minimumUsd} USD: limit ${limit_usd}, spent ${spent_usd}, reserved ${reserved_usd}`;
  return end(wouldFit ? 'budget_reserved' : 'budget_exhausted', message, { isFinal: !wouldFit, details });
}

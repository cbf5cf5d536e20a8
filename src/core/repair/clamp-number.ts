/**
 * A number beyond a bound, or between two steps, becomes the nearest one allowed. Without doubt only where that is
 * close: 8,000 for a width of at most 7,680 means as wide as possible, but 0 and -1 mean none, and 100 dB is no gain.
 */
import { type Broken, type Candidate, replaceValue } from './candidate.ts';
import { valueAt } from './operation.ts';
import type { SchemaFinding } from './schema-finding.ts';
import { schemasAt } from './schema-walk.ts';

/** How far from what is allowed is close, as a share of it. */
const closeShare = 0.25;

/** 0: any number. */
function stepAt({ schema }: Broken, pointer: string): number {
  const steps = schemasAt(schema, pointer).flatMap(({ type, multipleOf }) => [
    ...(type === 'integer' ? [1] : []),
    ...(typeof multipleOf === 'number' ? [multipleOf] : []),
  ]);
  return Math.max(0, ...steps);
}

/** The allowed number closest to a bound; none where there is always one closer. */
function settle(limit: number, comparison: string, step: number): readonly number[] {
  const isExcluded = comparison === '>' || comparison === '<';
  if (step === 0) return isExcluded ? [] : [limit];
  const inwards = comparison.startsWith('>') ? 1 : -1;
  const steps = inwards === 1 ? Math.ceil(limit / step) : Math.floor(limit / step);
  return [(isExcluded && steps * step === limit ? steps + inwards : steps) * step];
}

/** Both neighbours where neither is closer. */
function roundTo(value: number, step: number): readonly number[] {
  const below = Math.floor(value / step) * step;
  const above = below + step;
  if (value - below === above - value) return [below, above];
  return [value - below < above - value ? below : above];
}

export function clampNumber(broken: Broken, { pointer, params }: SchemaFinding): readonly Candidate[] {
  const value = valueAt(broken.input, pointer);
  if (pointer === '' || typeof value !== 'number') return [];
  const { limit, comparison, multipleOf } = params;
  const allowed =
    typeof multipleOf === 'number'
      ? roundTo(value, multipleOf)
      : settle(Number(limit), String(comparison), stepAt(broken, pointer));
  return allowed.filter(Number.isFinite).map((nearest) => {
    const isClose = Math.abs(value - nearest) <= closeShare * Math.abs(nearest);
    const description = `take ${nearest}, the nearest allowed, for ${value}`;
    return replaceValue('clamp', {
      pointer,
      oldValue: value,
      newValue: nearest + 0,
      description,
      isSure: isClose,
    });
  });
}

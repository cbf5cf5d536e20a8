/** How a call is shown. */
import type { CallRecord, CallTokens } from '@capstan/core/contracts/call';
import { lookOf, type StateLook } from '../shared/state.ts';

export function lookOfCall({ outcome }: Pick<CallRecord, 'outcome'>): StateLook {
  return outcome === 'cached' ? { ...lookOf('reused'), word: 'cached' } : lookOf(outcome);
}

function count(tokens: number): string {
  return tokens.toLocaleString('en-US');
}

/** `30 in (20 cached), 12 out (4 thought)`; null: none are reported. */
export function describeTokens(tokens: CallTokens | null): string | null {
  if (tokens === null) return null;
  const { input, output, cached_read, cached_write, reasoning } = tokens;
  const inner = [
    cached_read === undefined || cached_read === 0 ? [] : [`${count(cached_read)} cached`],
    cached_write === undefined || cached_write === 0 ? [] : [`${count(cached_write)} into the cache`],
  ].flat();
  const parts = inner.length === 0 ? '' : ` (${inner.join(', ')})`;
  const thought = reasoning === undefined || reasoning === 0 ? '' : ` (${count(reasoning)} thought)`;
  return [
    input === undefined ? [] : [`${count(input)} in${parts}`],
    output === undefined ? [] : [`${count(output)} out${thought}`],
  ]
    .flat()
    .join(', ');
}

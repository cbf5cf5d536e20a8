/** The part of the calls that a budget limits, as the API writes it and as people read it. */
import type { NameOfKey } from '../../api/key-names.ts';

export const budgetKinds = ['label', 'key', 'capability', 'user'] as const;
export type BudgetKind = (typeof budgetKinds)[number];

type FormTexts = Pick<FormData, 'get'>;

function textOf(fields: FormTexts, name: string): string {
  return String(fields.get(name) ?? '').trim();
}

/** `label:team=ads`, `key:key_0Bn…` */
export function scopeOf(kind: BudgetKind, fields: FormTexts): string {
  const value = textOf(fields, 'value');
  return kind === 'label' ? `label:${textOf(fields, 'name')}=${value}` : `${kind}:${value}`;
}

export function readUsd(fields: FormTexts): number {
  return Number(fields.get('usd'));
}

/** `key ads-team`; other parts have names already. */
export function nameScope(scope: string, nameOfKey: NameOfKey): string {
  const id = scope.startsWith('key:') ? scope.slice('key:'.length) : null;
  const name = id === null ? null : nameOfKey(id);
  return name === null ? scope : `key ${name}`;
}

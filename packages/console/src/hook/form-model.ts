/** The form of a hook: its settings as texts, and the faults that the server finds in them. */
import type { Hook, HookRequest, HookSettings, HookSignature } from '@capstan/core/contracts/hook';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import { isPlainObject } from '@capstan/core/json/values';
import { parseJson } from '../form/schema-model.ts';
import { readChoice } from '../form/target-model.ts';

export const everyBody = '{{ body }}';

/** The template of a job as its form shows it. */
export function writeJob(job: Hook['job']): string {
  return typeof job === 'string' ? job : JSON.stringify(job, null, 2);
}

/** One expression, or an object whose values have expressions. Null: it begins as an object and is none. */
export function readJob(text: string): string | JsonObject | null {
  const template = text.trim();
  if (template === '') return everyBody;
  if (!template.startsWith('{') || template.startsWith('{{')) return template;
  const value = parseJson(template);
  return isPlainObject(value) ? value : null;
}

type KeptSettings = Partial<Pick<Hook, 'priority' | 'budget_ceiling_usd' | 'labels' | 'enabled'>>;

/** What the form does not ask for. */
function keptOf({ priority, budget_ceiling_usd, labels, enabled = true }: KeptSettings) {
  return {
    enabled,
    ...(priority === undefined ? {} : { priority }),
    ...(budget_ceiling_usd === undefined ? {} : { budget_ceiling_usd }),
    ...(labels === undefined ? {} : { labels }),
  };
}

/** The settings of a hook, for their replacement. */
export function settingsOf(hook: HookSettings): HookSettings {
  const { pipeline, version, alias, signature, job, filter, key } = hook;
  return {
    pipeline,
    signature,
    job,
    ...keptOf(hook),
    ...(version === undefined ? {} : { version }),
    ...(alias === undefined ? {} : { alias }),
    ...(filter === undefined ? {} : { filter }),
    ...(key === undefined ? {} : { key }),
  };
}

interface WrittenHook {
  /** The values of the form, by name. */
  readonly field: (name: string) => string;
  readonly pipeline: string;
  readonly signature: HookSignature;
  /** The hook as it was. */
  readonly former?: KeptSettings | undefined;
}

/** @returns null: the job is no template */
export function toHookSettings({
  field,
  pipeline,
  signature,
  former = {},
}: WrittenHook): HookSettings | null {
  const job = readJob(field('job'));
  if (job === null) return null;
  const [filter, key] = [field('filter').trim(), field('key').trim()];
  return {
    ...keptOf(former),
    pipeline,
    ...readChoice(field('choice')),
    signature,
    job,
    ...(filter === '' ? {} : { filter }),
    ...(key === '' ? {} : { key }),
  };
}

/** @returns null: the job is no template */
export function toHookRequest(written: WrittenHook): HookRequest | null {
  const settings = toHookSettings(written);
  const secret = written.field('secret').trim();
  return settings === null
    ? null
    : { name: written.field('name').trim(), ...settings, ...(secret === '' ? {} : { secret }) };
}

const shownFields = ['name', 'pipeline', 'choice', 'signature', 'secret', 'job', 'filter', 'key'] as const;
export type HookField = (typeof shownFields)[number];
export type HookFaults = Readonly<Partial<Record<HookField, string>>>;

/** The field with the value of a pointer: `job` for `/job/commit`. */
function fieldOf(pointer: string): HookField | undefined {
  const [, first = ''] = pointer.split('/');
  const name = first === 'version' || first === 'alias' ? 'choice' : first;
  return shownFields.find((field) => field === name);
}

/** The first fault of each field, with its place within. */
export function faultsByField(errors: readonly ProblemItem[]): HookFaults {
  const faults: Partial<Record<HookField, string>> = {};
  for (const { pointer, message } of errors) {
    const field = fieldOf(pointer);
    if (field === undefined) continue;
    const within = pointer.split('/').slice(2).join('/');
    faults[field] ??= within === '' ? message : `${within}: ${message}`;
  }
  return faults;
}

/** Whether each of the faults has a field of its own. */
export function areAllShown(errors: readonly ProblemItem[]): boolean {
  return errors.length > 0 && errors.every(({ pointer }) => fieldOf(pointer) !== undefined);
}

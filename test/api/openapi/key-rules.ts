/** Which sets of keys a schema allows, as far as it does so without values: by `required`, alone or combined. */
import type { JsonSchema } from './document.ts';

/** undefined: it depends on values. */
type Verdict = boolean | undefined;

function all(verdicts: readonly Verdict[]): Verdict {
  return verdicts.includes(false) ? false : verdicts.includes(undefined) ? undefined : true;
}

function any(verdicts: readonly Verdict[]): Verdict {
  return verdicts.includes(true) ? true : verdicts.includes(undefined) ? undefined : false;
}

function one(verdicts: readonly Verdict[]): Verdict {
  return verdicts.includes(undefined)
    ? undefined
    : verdicts.filter((verdict) => verdict === true).length === 1;
}

function not(verdict: Verdict): Verdict {
  return verdict === undefined ? undefined : !verdict;
}

function judge(rule: JsonSchema, keys: ReadonlySet<string>): Verdict {
  const each = (keyword: string): Verdict[] =>
    ((rule[keyword] ?? []) as JsonSchema[]).map((part) => judge(part, keys));
  const required = (rule.required ?? []) as readonly string[];
  return all([
    required.every((key) => keys.has(key)),
    all(each('allOf')),
    'anyOf' in rule ? any(each('anyOf')) : true,
    'oneOf' in rule ? one(each('oneOf')) : true,
    'not' in rule ? not(judge(rule.not as JsonSchema, keys)) : true,
    'properties' in rule || 'const' in rule || 'pattern' in rule ? undefined : true,
  ]);
}

export function mayHaveKeys(schema: JsonSchema, keys: readonly string[]): boolean {
  return judge(schema, new Set(keys)) !== false;
}

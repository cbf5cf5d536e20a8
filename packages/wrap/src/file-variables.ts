/**
 * `${NAME}` in the file of a wrapped capability: a variable of the environment, for secrets and addresses only. It is
 * replaced in `token`, in keys that end in `url`, and below `headers` and `env`; it is refused elsewhere, so that no
 * variable reaches a request by mistake. `$${NAME}` stands for the text `${NAME}`. A secret may not be written out; an
 * expression that reads one from the call is none.
 */
import type { Json } from '@capstan/core/contracts/primitives';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import { extendPointer, isList, isPlainObject, splitPointer } from '@capstan/core/json/values';
import type { WrapFault } from './templates.ts';

/** Also the begin of one that has no name. */
const variable = /\$?\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?/g;
const wholeVariable = /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/;

/** Headers that hold credentials, in small letters. */
const secretHeaders =
  /^(authorization|proxy-authorization|cookie|x-auth.*|(x-)?api-?key|.*-(token|secret|api-key))$/;

interface EnvironmentReading {
  readonly value: Json;
  readonly faults: readonly WrapFault[];
  /** Values of variables; they are hidden in messages. */
  readonly secrets: readonly string[];
  /** Names of variables that are not set. */
  readonly missing: readonly string[];
}

/** In place of a variable that is not set. It has the form of an address, so that this fault is the only one. */
export const missingValue = 'http://missing.invalid';

interface VariableWalk {
  readonly environment: NodeJS.ProcessEnv;
  readonly faults: WrapFault[];
  readonly secrets: Set<string>;
  readonly missing: Set<string>;
}

type StringPlace = 'secret' | 'credential' | 'open' | 'closed';

function placeOf(pointer: string): StringPlace {
  const path = splitPointer(pointer);
  // Schemas, expressions of the result and descriptions are no place for variables.
  if (['input', 'output', 'result', 'description'].includes(path[0] ?? '')) return 'closed';
  const [above, key = ''] = [path.at(-2), path.at(-1)];
  if (key === 'token' || key === 'secret') return 'secret';
  if (above === 'headers') return secretHeaders.test(key.toLowerCase()) ? 'credential' : 'open';
  return above === 'env' || /(^|_)url$/.test(key) ? 'open' : 'closed';
}

const expressions = /\{\{(.*?)\}\}/gs;
const quoted = /'[^']*'|"[^"]*"/g;

/** Names of schemes such as `Bearer`, and of cookies; a credential has digits or signs, or is longer. */
function isPlainWord(word: string): boolean {
  return word.length < 4 || /^[a-z]{1,16}$/i.test(word);
}

/** Whether the credential comes from the call alone: expressions read it, and nothing else in the text may be one. */
function isReadFromCall(text: string): boolean {
  const read = [...text.matchAll(expressions)].map(([, inner = '']) => inner);
  const readsInput = read.some((inner) => /\b(?:input|files)\b/.test(inner.replace(quoted, '')));
  const written = [text.replace(expressions, ' '), ...read.flatMap((inner) => inner.match(quoted) ?? [])];
  return (
    readsInput &&
    written
      .join(' ')
      .split(/[\s=;,:'"]+/)
      .every(isPlainWord)
  );
}

function findLiteralSecret(text: string, place: StringPlace): string | null {
  if (place === 'secret' && !wholeVariable.test(text)) return 'a secret is not written into the file';
  const hasVariable = text.replace(/\$\$\{/g, '').match(variable) !== null;
  return place === 'credential' && !hasVariable && !isReadFromCall(text)
    ? 'this header holds a secret, which is not written into the file'
    : null;
}

const unnamed = {
  code: 'variable_invalid',
  message: `after \${ belongs a name of letters, digits and _, and }`,
  suggestion: `write $\${ for the text itself`,
} as const;

function replaceVariables(text: string, pointer: string, walk: VariableWalk): string {
  const place = placeOf(pointer);
  const literal = findLiteralSecret(text, place);
  if (literal !== null) {
    const suggestion =
      'set a variable of the environment and write its name instead, after $ and in braces; a header of kind http may also read it from the input of the call: {{ input.authorization }}';
    walk.faults.push({ code: 'secret_literal', pointer, message: literal, suggestion });
    return text;
  }
  return text.replace(variable, (written, name: string | undefined, offset: number) => {
    // Programs and shells may read other texts in their own way.
    if (name === undefined && place === 'closed') return written;
    if (written.startsWith('$$')) return written.slice(1);
    if (name === undefined) {
      walk.faults.push({ ...unnamed, pointer, offset });
      return missingValue;
    }
    if (place === 'closed') {
      const message = `${written} is not replaced here; allowed are token, keys that end in url, headers and env`;
      walk.faults.push({
        code: 'variable_misplaced',
        pointer,
        offset,
        message,
        suggestion: `write $${written} for the text itself`,
      });
      return written;
    }
    const value = walk.environment[name];
    if (value === undefined || value === '') {
      const message = `the variable ${name} is not set in the environment`;
      walk.faults.push({ code: 'variable_missing', pointer, offset, message });
      walk.missing.add(name);
      return missingValue;
    }
    if (place !== 'open' || value.length >= 8) walk.secrets.add(value);
    return value;
  });
}

function walkValue(value: Json, pointer: string, walk: VariableWalk): Json {
  if (typeof value === 'string') return replaceVariables(value, pointer, walk);
  if (isList(value)) return value.map((item, at) => walkValue(item, extendPointer(pointer, at), walk));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, walkValue(inner, extendPointer(pointer, key), walk)]),
  );
}

/** @param at the place of the value in its file */
export function readEnvironment(value: Json, environment: NodeJS.ProcessEnv, at = ''): EnvironmentReading {
  const walk: VariableWalk = { environment, faults: [], secrets: new Set(), missing: new Set() };
  const replaced = walkValue(value, at, walk);
  return { value: replaced, faults: walk.faults, secrets: [...walk.secrets], missing: [...walk.missing] };
}

/**
 * What of a value may be a key. For an address that is all but its origin: user, password, and a path or query with a
 * part that is no plain word.
 */
function keysIn(value: string): readonly string[] {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value) || !URL.canParse(value)) return [value];
  const { username, password, pathname, search, searchParams } = new URL(value);
  const path = withoutEndSlashes(pathname);
  const parts = [...path.split('/'), ...searchParams.values()].filter(isTelling);
  const whole = parts.length === 0 ? [] : [path + search, path.length > 1 ? path : ''];
  const user = [isTelling(username) ? username : '', password.length >= 4 ? password : ''];
  return [username === '' ? '' : value, ...user, ...whole, ...parts];
}

/** As they are, and as JSON and URLs write them. */
function formsOf(key: string): readonly string[] {
  return [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)];
}

/** @returns a function that replaces the secrets in a text */
export function createHider(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.flatMap(keysIn).flatMap(formsOf);
  const known = [...new Set(forms)].filter((form) => form !== '').sort((a, b) => b.length - a.length);
  return (text) => known.reduce((shown, form) => shown.replaceAll(form, '***'), text);
}

// The text of a file as messages may show it. A secret may be anywhere in it: in a header, the query of an address, an
// argument, a comment, and in a text that is no YAML. So every literal is masked, except where none can be a secret.
// Keys, expressions and names of variables stay. Columns stay too, so that a caret fits.

/** Keys whose values are words of this format, numbers or names. */
const plainKeys: ReadonlySet<string> = new Set([
  // Of the file of `capstan up`.
  ...['ready_timeout', 'stop_timeout', 'restart', 'max_restarts', 'count', 'slots', 'takes', 'port'],
  ...['kind', 'name', 'version', 'type', 'method', 'stdout', 'stream', 'timeout', 'grace', 'required'],
  ...[
    'max_concurrency',
    'deterministic',
    'stops',
    'shared_with',
    'affinity',
    'max_resident',
    'idle_timeout',
    'cancel_after',
    'rate_usd',
    'per',
    'every',
    'cost',
    'input',
    'output',
    'properties',
  ],
]);

const token =
  /(?<expression>\{\{.*?\}\})|(?<variable>\$?\$\{\w+\})|(?<key>["']?[A-Za-z_-]+["']?)(?=\s*:(?:\s|$))|(?<origin>https?:\/\/[\w.-]+(?::\d{1,5})?(?=[/?#"'\s,}\]]|$))|(?<flag>(?<=^|[\s"'[,])--[a-z][a-z-]*(?=[=\s"',\]]|$))|(?<literal>[^\s"'[\]{},:|>]+)|(?<other>.)/gsu;

/** Literals inside an expression are quoted. */
function maskExpression(expression: string, mask: (literal: string) => string): string {
  return expression.replace(
    /'[^']*'|"[^"]*"/g,
    (quoted) => `${quoted[0]}${mask(quoted.slice(1, -1))}${quoted[0]}`,
  );
}

/** A word or a number, such as this format has for itself. */
const plain = /^(?:[a-z]{1,11}|\d{1,6}(?:\.\d{1,3}){0,2}(?:ms|[smhd])?)$/;

/** Neither a word nor a number that messages have for themselves. */
function isTelling(literal: string): boolean {
  return literal.length >= 12 || (literal.length >= 4 && /[^a-z]/.test(literal));
}

export interface MaskedText {
  /** The text with its literals masked. */
  readonly shown: string;
  /** Takes the literals out of a message. */
  readonly hide: (message: string) => string;
}

export function maskText(text: string): MaskedText {
  const hidden = new Set<string>();
  const mask = (literal: string): string => {
    if (isTelling(literal)) hidden.add(literal);
    return '*'.repeat(literal.length);
  };
  const maskLine = (line: string): string => {
    let isPlain = false;
    return line.replace(token, (found: string, ...given: unknown[]) => {
      const { expression, key, literal } = given.at(-1) as Readonly<Record<string, string | undefined>>;
      if (key !== undefined) isPlain = plainKeys.has(key.replace(/["']/g, ''));
      if (expression !== undefined) return maskExpression(expression, mask);
      return literal === undefined || (isPlain && plain.test(literal)) ? found : mask(literal);
    });
  };
  const shown = text
    .split(/(\r\n|\n|\r)/)
    .map(maskLine)
    .join('');
  const longestFirst = [...hidden].sort((a, b) => b.length - a.length);
  return {
    shown,
    hide: (message) => longestFirst.reduce((kept, one) => kept.replaceAll(one, '***'), message),
  };
}

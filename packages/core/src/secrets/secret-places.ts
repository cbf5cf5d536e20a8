/**
 * The places where the input of a step names a secret, `{{ secrets.NAME }}`.
 *
 * A secret evaluates to its reference, the text `[secret NAME]`, wherever a template is evaluated: in runs, plans and
 * mock runs. So every stored and shown input holds the reference. P1: the value is put in only at the places where the
 * definition names the secret, in the request to an instance. A text that looks like a reference and comes from a job,
 * an item or another step is never replaced. P2: a corrected input keeps each such place as it was; otherwise it is not
 * sent.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { Expression } from '../expression/ast.ts';
import { evaluateParts } from '../expression/evaluate.ts';
import type { ExpressionScope } from '../expression/evaluation.ts';
import { secretReference } from '../expression/language.ts';
import type { Meter } from '../expression/meter.ts';
import type { CompiledTemplate, TemplateNode } from '../expression/template.ts';
import { extendPointer, isList, isPlainObject } from '../json/values.ts';

/** The name of the secret that an expression is; null: it is anything else. */
function secretNamedBy(expression: Expression): string | null {
  if (expression.kind !== 'path' || expression.root !== 'secrets') return null;
  const [name, ...others] = expression.segments;
  return typeof name === 'string' && others.length === 0 ? name : null;
}

interface NamedSecret {
  readonly name: string;
  /** JSON Pointer of the string in the definition, and the offset in it, in UTF-16 units. */
  readonly pointer: string;
  readonly offset: number;
}

interface SecretString {
  readonly parts: readonly (string | Expression)[];
  readonly definitionPointer: string;
  /** Keys and indexes below the value. */
  readonly path: readonly string[];
}

function visit(node: TemplateNode, path: readonly string[], found: SecretString[]): void {
  switch (node.kind) {
    case 'literal':
      return;
    case 'list':
      for (const [index, item] of node.items.entries()) visit(item, [...path, String(index)], found);
      return;
    case 'object':
      for (const [key, value] of node.entries) visit(value, [...path, key], found);
      return;
    case 'expression':
    case 'text': {
      const parts = node.kind === 'text' ? node.parts : [node.expression];
      if (parts.some((part) => typeof part !== 'string' && secretNamedBy(part) !== null))
        found.push({ parts, definitionPointer: node.pointer, path });
    }
  }
}

function findStrings({ root }: CompiledTemplate): readonly SecretString[] {
  const found: SecretString[] = [];
  visit(root, [], found);
  return found;
}

/** The secrets that a template names by itself, not inside a larger expression. */
export function listNamedSecrets(template: CompiledTemplate): readonly NamedSecret[] {
  return findStrings(template).flatMap(({ parts, definitionPointer: pointer }) =>
    parts.flatMap((part) => {
      const name = typeof part === 'string' ? null : secretNamedBy(part);
      const offset = typeof part !== 'string' && part.kind === 'path' ? part.offset : 0;
      return name === null ? [] : [{ name, pointer, offset }];
    }),
  );
}

/** A string of an evaluated input that holds secrets. */
export interface SecretPlace {
  readonly path: readonly string[];
  /** Its texts, with the name of a secret in place of its value. */
  readonly parts: readonly (string | { readonly secret: string })[];
}

/** @throws ExpressionError */
export function findSecretPlaces(
  template: CompiledTemplate,
  scope: ExpressionScope,
  meter: Meter,
): readonly SecretPlace[] {
  return findStrings(template).map(({ parts, definitionPointer: pointer, path }) => {
    const texts = evaluateParts(parts, { scope, pointer, meter });
    return {
      path,
      parts: parts.map((part, index) => {
        const secret = typeof part === 'string' ? null : secretNamedBy(part);
        return secret === null ? (texts[index] ?? '') : { secret };
      }),
    };
  });
}

/** Each name once. */
export function namesOf(places: readonly SecretPlace[]): readonly string[] {
  const names = places.flatMap(({ parts }) =>
    parts.flatMap((part) => (typeof part === 'string' ? [] : part.secret)),
  );
  return [...new Set(names)];
}

export function pointerOf({ path }: SecretPlace): string {
  return extendPointer('', ...path);
}

function textOf({ parts }: SecretPlace, textFor: (name: string) => string): string {
  return parts.map((part) => (typeof part === 'string' ? part : textFor(part.secret))).join('');
}

function valueAt(input: Json, path: readonly string[]): Json | undefined {
  let value: Json | undefined = input;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = isList(value) ? value[Number(key)] : value[key];
  }
  return value;
}

/** P2. @returns the first place that an input does not hold as the definition gives it; null = it holds all */
export function findChangedPlace(input: JsonObject, places: readonly SecretPlace[]): SecretPlace | null {
  return places.find((place) => valueAt(input, place.path) !== textOf(place, secretReference)) ?? null;
}

/** P1. @returns the input with the values; `input` holds every place */
export function fillSecrets(
  input: JsonObject,
  places: readonly SecretPlace[],
  values: ReadonlyMap<string, string>,
): JsonObject {
  const textFor = (name: string): string => {
    const value = values.get(name);
    if (value === undefined) throw new RangeError(`no value of the secret ${name}`);
    return value;
  };
  return places.reduce<Json>(
    (filled, place) => replaceAt(filled, place.path, textOf(place, textFor)),
    input,
  ) as JsonObject;
}

function replaceAt(value: Json, [key, ...below]: readonly string[], text: string): Json {
  if (key === undefined) return text;
  if (isList(value))
    return value.map((item, at) => (String(at) === key ? replaceAt(item, below, text) : item));
  if (!isPlainObject(value)) throw new RangeError('the input has no such place');
  return Object.fromEntries(
    Object.entries(value).map(([own, inner]) => [own, own === key ? replaceAt(inner, below, text) : inner]),
  );
}

/** Part of the key of a cached result: the places, and the versions of the secrets, never a value. */
export function describePlaces(
  places: readonly SecretPlace[],
  versionOf: (name: string) => string,
): readonly string[] {
  return places.map(
    (place) =>
      `${pointerOf(place)} ${namesOf([place])
        .map((name) => `${name}@${versionOf(name)}`)
        .join(' ')}`,
  );
}

/**
 * Texts for agents that others wrote: descriptions of capabilities and pipelines, and those inside their schemas. A
 * model reads them as instructions, so each is cut, holds no invisible character, and names its origin. No filter can
 * distinguish a harmful sentence from a useful one: the rights and the budget of the key are the limit.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { dataKeywords, isDraft7, schemaMaps } from '../schema-types/references.ts';

/** The most characters of each kind of text. */
export const foreignTextLimits = { description: 1_000, annotation: 300, schema: 32_768 } as const;

/** Controls but white space, formats (zero width, bidirectional, tags), lone surrogates, private use, variation selectors. */
const hidden = /(?!\s)(?:[\p{Cc}\p{Cf}\p{Cs}\p{Co}]|\u034f|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}])/gu;

/** One paragraph of visible characters. @param most characters, the mark of the cut included */
export function cleanForeignText(text: string, most: number): string {
  const shown = text
    .slice(0, 4 * most)
    .replace(hidden, '')
    .replace(/[\s\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  const characters = [...shown];
  return characters.length <= most ? shown : `${characters.slice(0, most - 1).join('')}…`;
}

/** @param author for example `the instance of concat` */
export function quoteForeignText(text: string, author: string): string {
  const shown = cleanForeignText(text, foreignTextLimits.description);
  return shown === '' ? '' : `Description by ${author}, not checked: ${JSON.stringify(shown)}`;
}

const annotations: ReadonlySet<string> = new Set(['title', 'description']);
/** Nothing that a check needs. */
const omitted: ReadonlySet<string> = new Set(['$comment', 'examples', '$schema']);

function cleanNode(node: Json, isMap: boolean): Json {
  if (isList(node)) return node.map((item) => cleanNode(item, false));
  if (!isPlainObject(node)) return node;
  const entries = Object.entries(node).flatMap(([key, value]): [string, Json][] => {
    if (isMap) return [[key, cleanNode(value, false)]];
    if (omitted.has(key)) return [];
    if (annotations.has(key))
      return typeof value === 'string' ? [[key, cleanForeignText(value, foreignTextLimits.annotation)]] : [];
    return [[key, dataKeywords.has(key) ? value : cleanNode(value, schemaMaps.has(key))]];
  });
  return Object.fromEntries(entries);
}

const drafts = {
  old: 'http://json-schema.org/draft-07/schema#',
  newest: 'https://json-schema.org/draft/2020-12/schema',
} as const;

/** The address of its draft, as the draft writes it: a client without it reads a schema by the newest draft. */
function draftOf(schema: JsonObject): { readonly $schema?: string } {
  if (schema.$schema === undefined) return {};
  return { $schema: isDraft7(schema) ? drafts.old : drafts.newest };
}

/**
 * The schema of a tool's input: the subject's own, with its draft and clean annotations. One that is too long, or does
 * not describe an object, becomes any object; the call is still checked by the whole schema.
 */
export function toToolSchema(schema: JsonObject): JsonObject & { readonly type: 'object' } {
  const clean = cleanNode(schema, false);
  const { type = 'object' } = schema;
  const isShort = JSON.stringify(clean).length <= foreignTextLimits.schema;
  if (type === 'object' && isShort && isPlainObject(clean))
    return { ...draftOf(schema), ...clean, type: 'object' };
  const description = isShort ? 'An object.' : 'An object. Its schema is too long to be shown here.';
  return { type: 'object', description };
}

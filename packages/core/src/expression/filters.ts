/**
 * What an expression may use, depending on its place: roots, and the filters of pipeline definitions. A skill's
 * template has further filters: small corrections of a value that failed.
 */
import { ExactNumber, isKept } from '../contracts/exact-json.ts';
import type { Json } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';
import {
  describeIn,
  type ExpressionFilter,
  evaluationError,
  type FilterInput,
  formatJson,
  found,
  missing,
  type Outcome,
  refuseValue,
  scalarText,
  spend,
  spendBuilt,
  spendRead,
  spendValues,
  toScalar,
} from './evaluation.ts';
import {
  type AnyRootName,
  answerRootName,
  countBytes,
  hookRootNames,
  mediaPartTokens,
  rootNames,
  skillRootNames,
  tokenPatterns,
  withoutEndSlashes,
  wrapRootNames,
} from './language.ts';
import { listFilters } from './list-filters.ts';
import { charges } from './meter.ts';
import { textFilters } from './text-filters.ts';

// The filters of pipeline definitions: one row owns name, argument, documentation and behaviour. A filter never
// receives a missing value (evaluation continues at the next `??`), and rejects a value of the wrong type.

function toJsonText({ value, evaluation }: FilterInput): Outcome {
  return found(formatJson(value, evaluation));
}

function toText(input: FilterInput): Outcome {
  spend(input.evaluation, charges.textValue);
  const text = scalarText(input.value);
  if (text === null)
    throw refuseValue(input, 'string takes a string, number or boolean', 'JSON text is made by | json');
  return found(text);
}

function readScalar(written: string): number | ExactNumber {
  return isKept(written) || !Number.isFinite(Number(written)) ? Number(written) : new ExactNumber(written);
}

const numberText = new RegExp(`^${tokenPatterns.number}$`);

function toNumber(input: FilterInput): Outcome {
  if (typeof input.value === 'number' || (input.value as unknown) instanceof ExactNumber)
    return found(input.value);
  if (typeof input.value !== 'string') throw refuseValue(input, 'number takes a number or the text of one');
  spend(input.evaluation, charges.conversion + Math.ceil(input.value.length / charges.charactersEscaped));
  const value = numberText.test(input.value) ? readScalar(input.value) : Number.NaN;
  if (value instanceof ExactNumber || Number.isFinite(value)) return found(value as Json);
  throw evaluationError(input.evaluation, 'number takes the text of a JSON number, such as "42" or "-1.5"');
}

function toBoolean(input: FilterInput): Outcome {
  if (typeof input.value === 'boolean') return found(input.value);
  if (input.value === 'true' || input.value === 'false') return found(input.value === 'true');
  throw refuseValue(input, 'bool takes a boolean, "true" or "false"', 'compare instead: ( a == b )');
}

function countOf(input: FilterInput): Outcome {
  const { value } = input;
  if (typeof value === 'string' || isList(value)) return found(value.length);
  if (isPlainObject(value)) {
    const count = Object.keys(value).length;
    spendValues(input.evaluation, count);
    return found(count);
  }
  throw refuseValue(input, 'length takes a string, list or object');
}

function itemOf(filter: 'first' | 'last') {
  return (input: FilterInput): Outcome => {
    if (!isList(input.value)) throw refuseValue(input, `${filter} takes a list`);
    const item = input.value.at(filter === 'first' ? 0 : -1);
    if (item !== undefined) return found(item);
    return missing(() => ({ message: `the list is empty, it has no ${filter} item` }));
  };
}

function joinItems(input: FilterInput): Outcome {
  if (!isList(input.value)) throw refuseValue(input, 'join takes a list');
  spend(input.evaluation, input.value.length * charges.textValue);
  const texts = input.value.map((item, index) => {
    const text = scalarText(item);
    if (text !== null) return text;
    const seen = describeIn(input.evaluation, item);
    throw evaluationError(
      input.evaluation,
      `join takes strings, numbers and booleans; item ${index} is ${seen}`,
    );
  });
  const separator = typeof input.argument === 'string' ? input.argument : '';
  spendBuilt(
    input.evaluation,
    texts.reduce((length, text) => length + text.length + separator.length, 0),
  );
  return found(texts.join(separator));
}

function baseName(input: FilterInput): Outcome {
  if (typeof input.value !== 'string') throw refuseValue(input, 'basename takes a string');
  spendBuilt(input.evaluation, input.value.length); // sign by sign
  const path = withoutEndSlashes(input.value);
  return found(path.slice(path.lastIndexOf('/') + 1));
}

/** The type of a message's part that is not text, in the forms of OpenAI and of others. */
const mediaPart = /^(?:input_)?(?:image|audio|video|file|document)(?:_url)?$/;
const imagePart = /^(?:input_)?image(?:_url)?$/;
/** Keys of an image's address or content, which a model does not read as text. */
const imageKeys: ReadonlySet<string> = new Set(['url', 'data', 'image_url']);

/**
 * An upper bound: a token of a model's text has at least one byte. English has about four to a token; base64, rare
 * signs and some scripts have one or two. Lists and objects count with their keys and signs, as JSON text without
 * escapes.
 */
function estimateTokens({ value, evaluation }: FilterInput): Outcome {
  if (typeof value === 'string') {
    spendRead(evaluation, value.length);
    return found(countBytes(value));
  }
  let bytes = 0;
  let mediaParts = 0;
  const left: { readonly part: Json; readonly isImage: boolean }[] = [{ part: value, isImage: false }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { part } = next;
    if (isList(part)) {
      spendValues(evaluation, part.length);
      bytes += 2 + part.length;
      for (const item of part) left.push({ part: item, isImage: false });
    } else if (isPlainObject(part)) {
      const keys = Object.keys(part);
      spendValues(evaluation, keys.length);
      const type = typeof part.type === 'string' ? part.type : '';
      const isImage = next.isImage || imagePart.test(type);
      if (mediaPart.test(type)) mediaParts++;
      bytes += 2 + 4 * keys.length;
      for (const key of keys) {
        spendRead(evaluation, key.length);
        bytes += countBytes(key);
        const item = part[key] ?? null;
        if (!isImage || !imageKeys.has(key) || typeof item !== 'string') left.push({ part: item, isImage });
      }
    } else if (typeof part === 'string') {
      spendRead(evaluation, part.length);
      bytes += 2 + countBytes(part);
    } else bytes += String(toScalar(part, evaluation)).length;
  }
  return found(bytes + mediaParts * mediaPartTokens);
}

export const filters = {
  json: { argument: 'none', summary: 'the value as JSON text', apply: toJsonText },
  string: { argument: 'none', summary: 'a number or boolean as text', apply: toText },
  number: { argument: 'none', summary: 'the text of a JSON number as number', apply: toNumber },
  bool: { argument: 'none', summary: '"true" or "false" as boolean', apply: toBoolean },
  length: {
    argument: 'none',
    summary: 'items of a list, keys of an object, UTF-16 units of a string',
    apply: countOf,
  },
  first: {
    argument: 'none',
    summary: 'the first item of a list; missing when it is empty',
    apply: itemOf('first'),
  },
  last: {
    argument: 'none',
    summary: 'the last item of a list; missing when it is empty',
    apply: itemOf('last'),
  },
  join: {
    argument: 'string',
    summary: 'the strings, numbers and booleans of a list, with the argument between them',
    apply: joinItems,
  },
  basename: { argument: 'none', summary: 'the part of a path after the last /', apply: baseName },
  tokens: {
    argument: 'none',
    summary: `the most tokens that a model counts: the bytes, without the content of images, and ${mediaPartTokens} for each part that is an image, audio, video, file or document`,
    apply: estimateTokens,
  },
  default: {
    argument: 'value',
    summary: 'the argument in place of null or of a missing value, as by `??`',
    apply: ({ value }: FilterInput): Outcome => found(value), // evaluate.ts evaluates the argument where it is needed
  },
  ...listFilters,
  ...textFilters,
} as const satisfies Record<string, ExpressionFilter>;

export type FilterName = keyof typeof filters;

export const filterNames = Object.keys(filters) as FilterName[];

function roundBy(round: (value: number) => number) {
  return (input: FilterInput): Outcome => {
    const number = toNumber(input);
    if (!number.found) return number;
    if (typeof number.value !== 'number')
      throw refuseValue(
        { ...input, value: number.value },
        'int and even take a number that a calculation keeps',
      );
    return found(round(number.value) + 0); // never -0
  };
}

export const skillFilters = {
  int: {
    argument: 'none',
    summary: 'a number, or the text of one, without its fraction',
    apply: roundBy(Math.trunc),
  },
  even: {
    argument: 'none',
    summary: 'a number, or the text of one, as the next even integer towards zero',
    apply: roundBy((value) => Math.trunc(value / 2) * 2),
  },
} as const satisfies Record<string, ExpressionFilter>;

export type SkillFilterName = keyof typeof skillFilters;

// The place of an expression decides what it may refer to. Pipeline definitions and skill templates share one
// grammar, but a definition has no failing input to correct, and a skill has no run.

export type AnyFilterName = FilterName | SkillFilterName;

export const knownFilters: Readonly<Record<AnyFilterName, ExpressionFilter>> = {
  ...filters,
  ...skillFilters,
};

export interface Dialect {
  readonly roots: readonly AnyRootName[];
  readonly filterNames: readonly AnyFilterName[];
  /** The suggestion for an unknown root that resembles none. */
  readonly rootHint: string;
}

export const pipelineDialect: Dialect = {
  roots: rootNames,
  filterNames,
  rootHint: 'a field of the job is written job.<field>',
};

/** Of the condition that judges the answer of an item. */
export const answerDialect: Dialect = {
  ...pipelineDialect,
  roots: [...pipelineDialect.roots, answerRootName],
};

/** Of the input of one call. */
export const inputDialect: Dialect = {
  roots: ['input'],
  filterNames,
  rootHint: 'a field of the input is written input.<field>',
};

export const skillDialect: Dialect = {
  roots: skillRootNames,
  filterNames: Object.keys(knownFilters) as AnyFilterName[],
  rootHint: 'a field of the failing input is written input.<field>',
};

export const wrapDialect: Dialect = {
  roots: wrapRootNames,
  filterNames: Object.keys(knownFilters) as AnyFilterName[],
  rootHint: 'a field of the input is written input.<field>',
};

/** Of the delivery that a hook received. */
export const hookDialect: Dialect = {
  roots: hookRootNames,
  filterNames,
  rootHint: 'a field of the body is written body.<field>',
};

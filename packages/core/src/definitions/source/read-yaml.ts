/**
 * The JSON subset of YAML 1.2, with positions. The library composes the nodes; this walk turns them into values.
 * Anchors are shared and their repetition is bounded. Tags and non-JSON values are refused. An unquoted `{{ }}`, which
 * YAML reads as a map in a map, is reported and read as text.
 */
import { isAlias, isMap, isScalar, isSeq, type Pair, type Scalar, type YAMLMap, type YAMLSeq } from 'yaml';
import type { Json } from '../../contracts/primitives.ts';
import { readLostScalar } from '../../json/numbers.ts';
import { extendPointer } from '../../json/values.ts';
import {
  pointerAt,
  type SourceEntry,
  type SourceNode,
  type SourceProblem,
  type SourceReading,
  sourceLimits,
} from './source-node.ts';
import { composeYaml, readYamlErrors, unquotedExpression } from './yaml-library.ts';

/** The library needs about 1 KB and 4 µs for each part, so their number is bounded before it starts. */
const yamlLimits = { characters: 4_194_304, parts: 250_000, aliasedValues: 100_000 } as const;

function countParts(text: string): number {
  return text.match(/[\n,[{]|[-?] /g)?.length ?? 0;
}

interface YamlWalk {
  readonly text: string;
  readonly problems: SourceProblem[];
  readonly warnings: SourceProblem[];
  readonly anchors: Map<string, { readonly node: SourceNode; readonly values: number }>;
  values: number;
  aliasedValues: number;
  /** A limit was exceeded and reported: the rest is left out. */
  isCut: boolean;
}

interface NodePosition {
  readonly pointer: string;
  readonly depth: number;
  /** The position to report when the node itself is not written (`key:` without a value). */
  readonly start: number;
}

export function readYaml(text: string): SourceReading {
  if (text.length > yamlLimits.characters || countParts(text) > yamlLimits.parts) {
    const message = `the YAML text has more than ${yamlLimits.characters} characters or ${yamlLimits.parts} parts`;
    const suggestion = 'submit a definition of this size as JSON';
    return refuse([{ code: 'yaml_too_large', pointer: '', at: 0, message, suggestion }]);
  }
  const composed = composeYaml(text);
  if ('tooDeepAt' in composed) {
    const message = `the text nests deeper than ${sourceLimits.depth}`;
    return refuse([{ code: 'too_deep', pointer: '', at: composed.tooDeepAt, message }]);
  }
  const { document } = composed;
  const errors = readYamlErrors(text, document);
  const walk: YamlWalk = {
    text,
    problems: [],
    warnings: [],
    anchors: new Map(),
    values: 0,
    aliasedValues: 0,
    isCut: false,
  };
  const root = convert(document.contents, { pointer: '', depth: 0, start: 0 }, walk);
  if (walk.isCut) return refuse(walk.problems);
  if (errors.length === 0) return { root, problems: walk.problems, warnings: walk.warnings };
  const known = new Set(errors.map(({ at }) => at));
  const placed = errors.map((error) =>
    error.code === 'yaml_tag' ? { ...error, pointer: pointerAt(root, error.at) } : error,
  );
  return refuse([...placed, ...walk.problems.filter(({ at }) => !known.has(at))]);
}

function refuse(problems: readonly SourceProblem[]): SourceReading {
  return { root: null, problems, warnings: [] };
}

function convert(node: unknown, place: NodePosition, walk: YamlWalk): SourceNode {
  const nothing: SourceNode = { value: null, start: place.start, end: place.start };
  if (walk.isCut) return nothing;
  if (place.depth > sourceLimits.depth || ++walk.values > sourceLimits.values) {
    const message = `the text nests deeper than ${sourceLimits.depth} or holds too many values`;
    return cut(walk, place, { code: 'too_deep', message });
  }
  const before = walk.values + walk.aliasedValues;
  const converted =
    convertContent(node, { ...place, start: rangeOf(node)?.[0] ?? place.start }, walk) ?? nothing;
  const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
  if (anchor !== undefined) {
    walk.anchors.set(anchor, { node: converted, values: 1 + walk.values + walk.aliasedValues - before });
  }
  return converted;
}

function convertContent(node: unknown, place: NodePosition, walk: YamlWalk): SourceNode | undefined {
  if (isAlias(node)) return resolveAlias(node.source, place, walk);
  if (isScalar(node)) return convertScalar(node, place, walk);
  if (isMap(node)) return convertMap(node, place, walk);
  return isSeq(node) ? convertList(node, place, walk) : undefined;
}

type YamlFault = Pick<SourceProblem, 'code' | 'message' | 'suggestion'>;

function report(walk: YamlWalk, { pointer, start }: NodePosition, fault: YamlFault): SourceNode {
  if (walk.problems.length < sourceLimits.problems) walk.problems.push({ ...fault, pointer, at: start });
  return { value: null, start, end: start };
}

function cut(walk: YamlWalk, place: NodePosition, fault: YamlFault): SourceNode {
  walk.isCut = true;
  return report(walk, place, fault);
}

function rangeOf(node: unknown): readonly [number, number] | undefined {
  if (!isScalar(node) && !isMap(node) && !isSeq(node) && !isAlias(node)) return undefined;
  return node.range ? [node.range[0], node.range[1]] : undefined;
}

function resolveAlias(anchor: string, place: NodePosition, walk: YamlWalk): SourceNode {
  const target = walk.anchors.get(anchor);
  if (target === undefined) {
    const message = `*${anchor} stands before or inside what &${anchor} names`;
    return report(walk, place, { code: 'yaml_alias', message });
  }
  walk.aliasedValues += target.values;
  if (walk.aliasedValues <= yamlLimits.aliasedValues) return target.node;
  const message = `aliases repeat more than ${yamlLimits.aliasedValues} values`;
  return cut(walk, place, { code: 'yaml_alias', message });
}

function convertScalar(scalar: Scalar, place: NodePosition, walk: YamlWalk): SourceNode {
  const { value } = scalar;
  const [start, end] = rangeOf(scalar) ?? [place.start, place.start];
  const lost = readLostScalar(value, scalar.source);
  if (lost !== null) {
    report(walk, { ...place, start }, { code: 'number_inexact', ...lost });
    return { value: 0, start, end };
  }
  const isJson =
    value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
  if (isJson) {
    warnOfNumber(scalar, { ...place, start }, walk);
    return { value: value as Json, start, end };
  }
  const written = walk.text.slice(start, Math.min(end, start + 40));
  return report(walk, place, {
    code: 'value_not_json',
    message: `${written} is no value that JSON can hold`,
  });
}

/** The sign, leading zeros and prefixes of a number are lost: a postal code is no longer one. */
const lostInNumber = /^(?:\+|[-+]?0\d|0[ox])/;
/** A number with separators in YAML 1.1, a text in YAML 1.2. */
const grouped = /^[-+]?\d{1,3}(?:_\d{3})+(?:\.\d+)?$/;

function warnOfNumber(
  { type, source, value }: Scalar,
  { pointer, start }: NodePosition,
  walk: YamlWalk,
): void {
  if (type !== 'PLAIN' || source === undefined || walk.warnings.length >= sourceLimits.problems) return;
  const isNumber = typeof value === 'number';
  if (!(isNumber ? lostInNumber : grouped).test(source)) return;
  const read = isNumber ? `the number ${JSON.stringify(value)}` : 'a text';
  walk.warnings.push({
    code: 'yaml_number',
    pointer,
    at: start,
    message: `YAML reads ${source.slice(0, 40)} as ${read}`,
    suggestion: isNumber
      ? `for a text, quote it: ${JSON.stringify(source.slice(0, 40))}`
      : `for a number, write ${source.slice(0, 40).replaceAll('_', '')}`,
  });
}

function convertList(list: YAMLSeq, place: NodePosition, walk: YamlWalk): SourceNode {
  const [start, end] = rangeOf(list) ?? [place.start, place.start];
  const items = list.items.map((item, index) =>
    convert(item, { pointer: `${place.pointer}/${index}`, depth: place.depth + 1, start }, walk),
  );
  return { value: items.map(({ value }) => value), start, end, items };
}

function convertMap(map: YAMLMap, place: NodePosition, walk: YamlWalk): SourceNode {
  const [start, end] = rangeOf(map) ?? [place.start, place.start];
  if (isUnquotedExpression(map)) {
    const written = walk.text.slice(start, end);
    if (walk.problems.length < sourceLimits.problems) {
      walk.problems.push(unquotedExpression(place.pointer, start, written));
    }
    return { value: written, start, end };
  }
  const entries = new Map<string, SourceEntry>();
  const into = { place: { ...place, start }, entries };
  for (const pair of map.items) addEntry(pair, into, walk);
  const value = Object.fromEntries([...entries].map(([key, { node }]) => [key, node.value]));
  return { value, start, end, entries };
}

/** `{{ job.name }}`: a map in braces whose only key is a map in braces. */
function isUnquotedExpression(map: YAMLMap): boolean {
  const [only, second] = map.items;
  return map.flow === true && second === undefined && isMap(only?.key) && only.key.flow === true;
}

interface OpenMap {
  readonly place: NodePosition;
  readonly entries: Map<string, SourceEntry>;
}

function addEntry(pair: Pair, { place, entries }: OpenMap, walk: YamlWalk): void {
  const [keyStart, keyEnd] = rangeOf(pair.key) ?? [place.start, place.start];
  const at = { ...place, start: keyStart };
  if (isScalar(pair.key) && pair.key.value === '<<' && pair.key.type === 'PLAIN') {
    const message = 'merge keys (<<) are not supported; repeat the keys or use an anchor on the whole value';
    report(walk, at, { code: 'yaml_merge', message });
    return;
  }
  const key = isScalar(pair.key)
    ? typeof pair.key.value === 'string'
      ? pair.key.value
      : pair.key.source
    : undefined;
  if (key === undefined || key === '') {
    const message = 'a key is a text of at least one character; quote it if YAML reads it as something else';
    report(walk, at, { code: 'yaml_key', message });
    return;
  }
  const pointer = extendPointer(place.pointer, key);
  if (entries.has(key)) {
    const message = `the key ${JSON.stringify(key)} is written twice`;
    report(walk, { ...at, pointer }, { code: 'key_duplicate', message });
  }
  entries.set(key, {
    keyStart,
    node: convert(pair.value, { pointer, depth: place.depth + 1, start: keyEnd }, walk),
  });
}

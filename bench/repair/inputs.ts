/**
 * Valid inputs of a schema: real files of the installed packages where they have such, and inputs that are made from
 * the schema, of its examples, defaults and choices first.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { canonicalJson, isForbiddenName, isPlainObject } from '@capstan/core/json/values';
import { parse } from 'yaml';
import type { Random } from '../shared/random.ts';
import { choicesIn, partsOf, propertiesIn, requiredIn } from './facts.ts';
import type { RealSchema } from './schemas.ts';

/** Files of packages, by the name of their schema. */
const realFiles: Readonly<Record<string, readonly string[]>> = {
  'package.json': ['package.json'],
  'tsconfig.json': ['tsconfig.json'],
  'travis.json': ['.travis.yml'],
  'eslintrc.json': ['.eslintrc', '.eslintrc.yml', '.eslintrc.json'],
  'github-funding.json': ['.github/FUNDING.yml'],
  'dependabot-2.0.json': ['.github/dependabot.yml'],
  'nycrc.json': ['.nycrc'],
  'prettierrc.json': ['.prettierrc'],
  'jshintrc.json': ['.jshintrc'],
  'appveyor.json': ['appveyor.yml'],
};
const mostRealFiles = 6;
const mostMade = 6;
const mostTries = 40;

function listPackages(): readonly string[] {
  return readdirSync('node_modules')
    .sort()
    .map((name) => join('node_modules', name));
}

function readRealFiles({ name, check }: RealSchema): readonly Json[] {
  const names = realFiles[name] ?? [];
  const found: Json[] = [];
  for (const folder of names.length === 0 ? [] : listPackages()) {
    for (const path of names.map((one) => join(folder, one)).filter(existsSync)) {
      const input = readData(path);
      if (input !== undefined && found.length < mostRealFiles && check.find(input).length === 0)
        found.push(input);
    }
  }
  return found;
}

function readData(path: string): Json | undefined {
  try {
    const data: Json = parse(readFileSync(path, 'utf8'));
    return isPlainObject(data) ? data : undefined;
  } catch {
    return undefined;
  }
}

export function makeInputs(real: RealSchema, random: Random): readonly Json[] {
  const found = new Map(readRealFiles(real).map((input) => [canonicalJson(input), input]));
  const mostInAll = found.size + mostMade;
  for (let tries = 0; tries < mostTries && found.size < mostInAll; tries++) {
    const maker: Maker = { root: real.schema, random, share: 0.7 * (1 - tries / mostTries) };
    const input = make(maker, real.schema, 0);
    if (isPlainObject(input) && Object.keys(input).length > 0 && real.check.find(input).length === 0) {
      found.set(canonicalJson(input), input);
    }
  }
  return [...found.values()];
}

interface Maker {
  readonly root: JsonObject;
  readonly random: Random;
  /** Of the optional keys that are written. */
  readonly share: number;
}

const deepest = 5;

function pick<T>({ random }: Pick<Maker, 'random'>, values: readonly T[]): T | undefined {
  return values[random.below(values.length)];
}

function make(maker: Maker, schema: Json, depth: number): Json | undefined {
  const parts = partsOf(maker.root, schema, (branches) => [pick(maker, branches) ?? true]);
  const choices = choicesIn(parts);
  if (choices.length > 0) return pick(maker, choices);
  const given = parts.flatMap(({ examples, default: standard }) => [
    ...(Array.isArray(examples) ? examples : []),
    ...(standard === undefined ? [] : [standard]),
  ]);
  if (given.length > 0 && maker.random.uniform() < 0.7) return pick(maker, given);
  const types = parts.flatMap(({ type }) => (type === undefined ? [] : type)).flat();
  const type =
    pick(maker, types) ?? (parts.some(({ properties }) => properties !== undefined) ? 'object' : 'string');
  return makeOfType(maker, { type: String(type), parts, depth });
}

interface Wanted {
  readonly type: string;
  readonly parts: readonly JsonObject[];
  readonly depth: number;
}

function makeOfType(maker: Maker, wanted: Wanted): Json | undefined {
  switch (wanted.type) {
    case 'object':
      return makeObject(maker, wanted);
    case 'array':
      return makeList(maker, wanted);
    case 'string':
      return makeText(maker, wanted.parts);
    case 'boolean':
      return maker.random.below(2) === 1;
    case 'null':
      return null;
    default:
      return makeNumber(maker, wanted);
  }
}

const mapKeys = ['first', 'main', 'build', 'server-1'];

function makeObject(maker: Maker, { parts, depth }: Wanted): JsonObject {
  const properties = propertiesIn(parts);
  const required = requiredIn(parts);
  const optional = Object.keys(properties).filter((key) => !required.includes(key));
  const share = depth > deepest ? 0 : Math.min(maker.share, 12 / (1 + optional.length));
  const chosen = optional.filter(() => maker.random.uniform() < share);
  const made: Record<string, Json> = {};
  for (const key of [...required, ...chosen]) {
    const value = isForbiddenName(key) ? undefined : make(maker, properties[key] ?? true, depth + 1);
    if (value !== undefined) made[key] = value;
  }
  const member = parts.map(({ additionalProperties }) => additionalProperties).find(isPlainObject);
  if (member === undefined || depth > deepest || Object.keys(made).length > 0) return made;
  const value = make(maker, member, depth + 1);
  return value === undefined ? made : { [pick(maker, mapKeys) ?? 'first']: value };
}

function makeList(maker: Maker, { parts, depth }: Wanted): readonly Json[] {
  const items =
    parts.map((part) => part.items).find((one) => one !== undefined && !Array.isArray(one)) ?? true;
  const least = Math.max(0, ...parts.map(({ minItems }) => Number(minItems ?? 0)));
  const count = depth > deepest ? least : Math.max(least, 1 + maker.random.below(2));
  return Array.from({ length: Math.min(count, 5) }, () => make(maker, items, depth + 1)).filter(
    (item) => item !== undefined,
  );
}

const numbers = [1, 2, 3, 5, 10, 30, 60, 100, 250, 1_000, 3_000, 8_080, 44_100, 0.5, 0, 16, 400];

function makeNumber(maker: Maker, { type, parts }: Wanted): number | undefined {
  const least = Math.max(...parts.map(({ minimum }) => Number(minimum ?? Number.NEGATIVE_INFINITY)));
  const most = Math.min(...parts.map(({ maximum }) => Number(maximum ?? Number.POSITIVE_INFINITY)));
  const fit = numbers.filter(
    (one) => one >= least && one <= most && (type !== 'integer' || Number.isInteger(one)),
  );
  return pick(maker, fit) ?? (Number.isFinite(least) ? least : undefined);
}

const texts = [
  'main',
  'src',
  'lib/index.js',
  'Nightly build',
  'npm run build',
  'example',
  'linux',
  '1.2.3',
  '8080',
  'dev',
  '**/*.ts',
];
const byFormat: Readonly<Record<string, readonly string[]>> = {
  date: ['2024-05-17', '2023-11-30'],
  'date-time': ['2024-05-17T10:30:00Z', '2023-11-30T08:00:00Z'],
  time: ['10:30:00Z'],
  email: ['someone@example.com'],
  uri: ['https://example.com/a'],
  'uri-reference': ['docs/a.html'],
  hostname: ['example.com'],
  ipv4: ['192.0.2.1'],
  uuid: ['7b0d9a52-9f0c-4d7a-8d9b-2f6c1c9d6a11'],
  regex: ['^a+$'],
};
const forPatterns = [
  ...texts,
  ...Object.values(byFormat).flat(),
  'a',
  'A',
  '1',
  '1.0',
  'v1.0.0',
  '10s',
  '5m',
  '1h30m',
  'abc',
  'my-name',
  'my_name',
  'MyName',
  'com.example.app',
  '#ff0000',
  'file.json',
  './src',
  '/usr/bin',
  'example/repo',
  '@scope/name',
  'en',
  'en-US',
  '12:30',
  '100%',
  '512MB',
  'node:20',
  'value-1',
  'https://github.com/example/repo',
  '0123456789abcdef0123456789abcdef01234567',
];

function makeText(maker: Maker, parts: readonly JsonObject[]): string | undefined {
  const format = parts.map((part) => part.format).find((one) => typeof one === 'string');
  const patterns = parts.flatMap(({ pattern }) => (typeof pattern === 'string' ? [toRegExp(pattern)] : []));
  const likely = format === undefined ? texts : (byFormat[format] ?? texts);
  const fit = (patterns.length > 0 ? forPatterns : likely).filter((text) =>
    patterns.every((one) => one?.test(text) === true),
  );
  return pick(maker, fit);
}

/** Null for one of RE2 that is none of JavaScript: no text is made for it. */
function toRegExp(pattern: string): RegExp | null {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags);
    } catch {}
  }
  return null;
}

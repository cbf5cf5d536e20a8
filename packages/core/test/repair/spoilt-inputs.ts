/**
 * Inputs with one wrong place, made from right ones by every mistake at every place where it can be made, and kept
 * where the schema refuses them. The former right value is the one right answer; null: only the author knows it.
 */
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { canonicalJson, extendPointer, isList, isPlainObject } from '../../src/json/values.ts';
import { applyRepair } from '../../src/repair/propose-repairs.ts';
import { createPlaces } from '../../src/repair/schema-walk.ts';
import { brokenInputs, inputSchemas } from './broken-inputs.ts';
import { inputChecks } from './play-broken-input.ts';

export interface SpoiltInput {
  readonly capability: keyof typeof inputSchemas;
  readonly mistake: keyof typeof mistakes;
  /** Where. */
  readonly pointer: string;
  readonly input: Json;
  readonly answer: Json | null;
}

/** The schemas of a place of a right input. */
function schemasAt(
  { schema, input }: Pick<Place, 'schema' | 'input'>,
  pointer: string,
): readonly JsonObject[] {
  return createPlaces(schema, input).at(pointer)?.schemas ?? [];
}

interface Place {
  readonly schema: JsonObject;
  readonly input: Json;
  readonly pointer: string;
  readonly parent: string;
  readonly key: string;
  readonly value: Json;
}

function put({ input, pointer }: Place, value: Json): Json | undefined {
  return applyRepair(input, [{ op: 'replace', path: pointer, value }]);
}

function renamed({ input, pointer, parent, key }: Place, name: string): Json | undefined {
  const path = extendPointer(parent, name);
  return name === key ? undefined : applyRepair(input, [{ op: 'move', from: pointer, path }]);
}

function swap(text: string): string {
  return text.length < 4 ? text : `${text[0]}${text[2]}${text[1]}${text.slice(3)}`;
}

function dropLetter(text: string): string {
  return text.length < 5 ? text : text.slice(0, 2) + text.slice(3);
}

function hasChoice(place: Place): boolean {
  return schemasAt(place, place.pointer).some((one) => Array.isArray(one.enum) || one.const !== undefined);
}

function spell(place: Place, how: (text: string) => string): Json | undefined {
  const { value } = place;
  return typeof value === 'string' && hasChoice(place) ? put(place, how(value)) : undefined;
}

function moved({ input, pointer, parent, key }: Place, to: string): Json | undefined {
  return to === parent
    ? undefined
    : applyRepair(input, [{ op: 'move', from: pointer, path: extendPointer(to, key) }]);
}

/** What is made of an input at a place; undefined where the mistake cannot be made. */
const mistakes = {
  'letters of a key swapped': (place: Place) => renamed(place, swap(place.key)),
  'a letter of a key missing': (place: Place) => renamed(place, dropLetter(place.key)),
  'a key in camelCase': (place: Place) =>
    renamed(
      place,
      place.key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    ),
  'letters of a choice swapped': (place: Place) => spell(place, swap),
  'a letter of a choice missing': (place: Place) => spell(place, dropLetter),
  'a choice in capitals': (place: Place) => spell(place, (text) => text.toUpperCase()),
  'another word for a choice': (place: Place) => spell(place, () => 'something'),
  'a number or a truth as text': (place: Place) =>
    typeof place.value === 'number' || typeof place.value === 'boolean'
      ? put(place, String(place.value))
      : undefined,
  'a number as text with its unit': (place: Place) =>
    typeof place.value === 'number' ? put(place, `${place.value} units`) : undefined,
  'one item without its list': (place: Place) =>
    isList(place.value) && place.value.length === 1 ? put(place, place.value[0] ?? null) : undefined,
  'a key in the outermost object': (place: Place) => moved(place, ''),
  'a constant left out': (place: Place) =>
    schemasAt(place, place.pointer).some((one) => one.const !== undefined || one.default !== undefined)
      ? applyRepair(place.input, [{ op: 'remove', path: place.pointer }])
      : undefined,
  'a key left out': (place: Place) =>
    schemasAt(place, place.pointer).some((one) => one.const !== undefined || one.default !== undefined)
      ? undefined
      : applyRepair(place.input, [{ op: 'remove', path: place.pointer }]),
} satisfies Readonly<Record<string, (place: Place) => Json | undefined>>;

const unanswerable: ReadonlySet<string> = new Set(['another word for a choice', 'a key left out']);

type Source = Pick<SpoiltInput, 'capability' | 'input'>;

/** Every key of every object in it. */
function placesOf(source: Source, value: Json = source.input, at = ''): Place[] {
  if (isList(value))
    return value.flatMap((one, index) => placesOf(source, one, extendPointer(at, String(index))));
  if (!isPlainObject(value)) return [];
  const schema: JsonObject = inputSchemas[source.capability];
  return Object.entries(value).flatMap(([key, child]) => {
    const pointer = extendPointer(at, key);
    const place = { schema, input: source.input, pointer, parent: at, key, value: child };
    return [place, ...placesOf(source, child, pointer)];
  });
}

function rightInputs(): readonly Source[] {
  const right = brokenInputs.flatMap(({ capability, answer }) =>
    answer === null ? [] : [{ capability, input: answer }],
  );
  return [...new Map(right.map((one) => [`${one.capability} ${canonicalJson(one.input)}`, one])).values()];
}

export function spoilInputs(): readonly SpoiltInput[] {
  return rightInputs().flatMap((source) =>
    placesOf(source).flatMap((place) =>
      (Object.keys(mistakes) as (keyof typeof mistakes)[]).flatMap((mistake) => {
        const input = mistakes[mistake](place);
        const { capability, input: right } = source;
        if (input === undefined || inputChecks[capability].find(input).length === 0) return [];
        const answer = unanswerable.has(mistake) ? null : right;
        return [{ capability, mistake, pointer: place.pointer, input, answer }];
      }),
    ),
  );
}

/** The models of the ladder's levels, and the setting `LADDER_LEVELS` that gives a level another one. */
import { CapabilityName } from '../contracts/primitives.ts';

/** Of the levels 1 to 4, in their order. */
const levelNames = ['fast', 'capable', 'reasoning', 'top'] as const;
type LevelName = (typeof levelNames)[number];

/** The routed capability of each level with a model. */
export type LevelModels = Readonly<Record<LevelName, string>>;

const usualModels: LevelModels = {
  fast: 'model.fast',
  capable: 'model.capable',
  reasoning: 'model.reasoning',
  top: 'model.top',
};

const modelName = CapabilityName.startsWith('model.');

function findPairFault(pair: readonly string[]): string | null {
  const [name = '', capability, ...others] = pair;
  const seen = `"${pair.join('=')}"`;
  if (!Object.hasOwn(usualModels, name))
    return `${seen} names no level; allowed are ${levelNames.map((level) => `${level}=model.NAME`).join(', ')}`;
  if (modelName.safeParse(capability).success && others.length === 0) return null;
  return `${seen} names no model; allowed is ${name}=model.NAME`;
}

function toPairs(text: string): readonly string[][] {
  if (text.trim() === '') return [];
  return text.split(',').map((pair) => pair.split('=').map((part) => part.trim()));
}

/** @param text `fast=model.local,top=model.claude`; a level that is not named has its usual model */
export function readLevelModels(text: string): LevelModels {
  return { ...usualModels, ...Object.fromEntries(toPairs(text)) };
}

/** @returns what is wrong with the text, with the values allowed */
export function findLevelFaults(text: string): readonly string[] {
  const pairs = toPairs(text);
  const faults = pairs.flatMap((pair) => findPairFault(pair) ?? []);
  if (faults.length > 0) return faults;
  const names = pairs.map(([name]) => name);
  if (new Set(names).size < names.length)
    return [`"${text}" names a level twice; allowed is each level once`];
  const models = Object.entries(readLevelModels(text));
  return models.flatMap(([name, capability], at) => {
    const other = models.slice(0, at).find(([, earlier]) => earlier === capability);
    const words = `${capability} is the model of the levels ${other?.[0]} and ${name}`;
    return other === undefined ? [] : [`${words}; allowed is another model for each level`];
  });
}

/** Null for a capability that is not a level's model, neither by the setting nor usually. */
export function levelOfModel(models: LevelModels, capability: string): number | null {
  const find = (by: LevelModels): number => levelNames.findIndex((name) => by[name] === capability);
  const set = find(models);
  const found = set === -1 ? find(usualModels) : set;
  return found === -1 ? null : found + 1;
}

/** The capability of a level's model; null for level 0 and a person. */
export function modelOf(models: LevelModels, level: number): string | null {
  const name = levelNames[level - 1];
  return name === undefined ? null : models[name];
}

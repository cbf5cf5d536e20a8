/**
 * The levels of the ladder, its time limits, and how often and how long it waits for a person. The level that answers
 * an outside caller of `/advise` follows from that caller's history alone: it rises with the count of equal errors. So
 * a client that runs the specification's loop (advisor = failing level + 1, then level 0) climbs for a repeated error,
 * and stops.
 */
import { CapabilityName, type Priority } from '../../contracts/primitives.ts';

/** The levels of the ladder: the label that a person reads, and the name by which `LADDER_LEVELS` sets its model. */
export const topLevel = 4;
export const humanLevel = 5;

const rungs = [
  { label: 'static template', name: null },
  { label: 'fast model', name: 'fast' },
  { label: 'capable model', name: 'capable' },
  { label: 'reasoning model', name: 'reasoning' },
  { label: 'top-tier model', name: 'top' },
] as const;

const levelNames = rungs.flatMap(({ name }) => name ?? []);
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

function findPairFault(pair: string): string | null {
  const [name = '', capability] = pair.split('=').map((part) => part.trim());
  if (!Object.hasOwn(usualModels, name))
    return `"${pair}" names no level; allowed are ${levelNames.map((level) => `${level}=model.NAME`).join(', ')}`;
  if (modelName.safeParse(capability).success && pair.split('=').length === 2) return null;
  return `"${pair}" names no model; allowed is ${name}=model.NAME`;
}

function toPairs(text: string): readonly string[] {
  return text.trim() === '' ? [] : text.split(',').map((pair) => pair.trim());
}

/** @param text `fast=model.local,top=model.claude`; a level that is not named has its usual model */
export function readLevelModels(text: string): LevelModels {
  const given = toPairs(text).map((pair) => pair.split('=').map((part) => part.trim()));
  return { ...usualModels, ...Object.fromEntries(given) };
}

/** @returns what is wrong with the text, with the values allowed */
export function findLevelFaults(text: string): readonly string[] {
  const pairs = toPairs(text);
  const faults = pairs.flatMap((pair) => findPairFault(pair) ?? []);
  if (faults.length > 0) return faults;
  const names = pairs.map((pair) => pair.split('=')[0]?.trim());
  if (new Set(names).size < names.length)
    return [`"${text}" names a level twice; allowed is each level once`];
  const models = Object.entries(readLevelModels(text));
  return models.flatMap(([name, capability], at) => {
    const other = models.slice(0, at).find(([, earlier]) => earlier === capability);
    const words = `${capability} is the model of the levels ${other?.[0]} and ${name}`;
    return other === undefined ? [] : [`${words}; allowed is another model for each level`];
  });
}

export const exhaustedText = 'the escalation ladder is exhausted and human review is required';

export function labelOf(level: number): string {
  return rungs[level]?.label ?? 'human';
}

/** Null for a capability that is not a level's model, neither by the setting nor usually. */
export function levelOfModel(models: LevelModels, capability: string): number | null {
  const find = (by: LevelModels): number =>
    rungs.findIndex(({ name }) => name !== null && by[name] === capability);
  const set = find(models);
  const found = set === -1 ? find(usualModels) : set;
  return found === -1 ? null : found;
}

/** The capability of a level's model; null for level 0 and a person. */
export function modelOf(models: LevelModels, level: number): string | null {
  const name = rungs[level]?.name ?? null;
  return name === null ? null : models[name];
}

/** Time for model calls and executions of one ladder between two decisions of people, ms. */
export const ladderMs = 30 * 60_000;

/** How often one review is opened, including the first time. */
const reviewRounds = 3;

/** Whether the review of a round may be opened once more after its decision did not help. */
export function mayAskAgain(round: number): boolean {
  return round < reviewRounds;
}

/** How long a person has for a decision, ms. */
export function reviewDueMs(priority: Priority): number {
  return priority === 'interactive' ? 3_600_000 : 86_400_000;
}

/** Entries of a history after which only a person can help. */
const maxEntries = 12;

interface AdviceRequest {
  /** The requested level, 1 to 5. */
  readonly from_level: number;
  readonly fingerprint: string;
  /** Fingerprints of the errors in `escalation_history`. */
  readonly history: readonly string[];
}

/** @returns 1 to 4, or 5 = a person: answer with `suggested_executor_level: 5` */
export function effectiveLevel({ from_level, fingerprint, history }: AdviceRequest): number {
  if (history.length > maxEntries) return humanLevel;
  const times = history.filter((seen) => seen === fingerprint).length;
  return Math.min(Math.max(from_level, times, 1), humanLevel);
}

/**
 * `npm run prices`: writes the price book of models that `prices: book` reads, from two public catalogues. A model is in
 * it if the first catalogue has it with a price per token. Where the second one knows the same name, the higher price of
 * each class is held, and a difference of more than 1 % is noted. Nothing is fetched when the book is used.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { highestPrices, limitsOf, statedAbove } from '../packages/wrap/src/models/money/highest-prices.ts';
import type { BookModel, BookProvider, PriceBook } from '../packages/wrap/src/models/money/price-book.ts';
import type { StatedPeriod, TokenClass } from '../packages/wrap/src/models/money/prices.ts';
import {
  type FirstCatalogue,
  type FirstModel,
  type FirstProvider,
  first,
  readCatalogues,
  type SecondEntry,
  second,
} from './prices/catalogues.ts';
import { readFirst, readSecond } from './prices/read-catalogues.ts';

/** Providers by their name in the first catalogue, with their names in the second. */
const providers: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['anthropic'],
  arcee: [],
  avian: [],
  aws: ['bedrock', 'bedrock_converse'],
  azure: ['azure'],
  baseten: ['baseten'],
  cerebras: ['cerebras'],
  cloudflare: ['cloudflare'],
  cohere: ['cohere', 'cohere_chat'],
  deepseek: ['deepseek'],
  doubleword: [],
  fireworks: ['fireworks_ai'],
  google: ['gemini'],
  groq: ['groq'],
  minimax: ['minimax'],
  mistral: ['mistral'],
  moonshotai: ['moonshot'],
  novita: ['novita'],
  openai: ['openai'],
  openrouter: ['openrouter'],
  ovhcloud: ['ovhcloud'],
  perplexity: ['perplexity'],
  together: ['together_ai'],
  voyageai: ['voyage'],
  'x-ai': ['xai'],
  zai: ['zai'],
  zhipuai: [],
};

const modes = ['chat', 'completion', 'responses', 'embedding', undefined];
/** A difference that rounding does not explain. */
const tolerance = 0.01;

interface Sums {
  shared: number;
  differ: number;
  alone: number;
  readonly notes: string[];
}

function equalsOf(match: FirstModel['match']): string[] {
  if ('equals' in match) return [match.equals];
  return 'or' in match ? match.or.flatMap(equalsOf) : [];
}

/** The prices of the second catalogue by the names that it has at a provider. */
function pricesOf(table: Readonly<Record<string, SecondEntry>>, names: readonly string[]) {
  const found = new Map<string, StatedPeriod>();
  for (const [key, entry] of Object.entries(table)) {
    const { litellm_provider: provider = '', mode } = entry;
    if (!names.includes(provider) || !modes.includes(mode)) continue;
    const prices = readSecond(entry);
    const name = key.startsWith(`${provider}/`) ? key.slice(provider.length + 1) : key;
    if (prices !== null) found.set(name, prices);
  }
  return found;
}

/** `output: 10 or 15`, for each class that differs. */
function describeDifferences(one: StatedPeriod, other: StatedPeriod): string[] {
  const lengths = [0, ...limitsOf([one, other])];
  return lengths.flatMap((tokens) => {
    const [a, b] = [one, other].map((period) => statedAbove(period, tokens * 1.01));
    const names = Object.keys(a ?? {}) as TokenClass[];
    return names.flatMap((name) => {
      const [x = 0, y = 0] = [a?.[name], b?.[name]];
      if (b?.[name] === undefined || Math.abs(x - y) <= tolerance * Math.max(x, y)) return [];
      return [`${name}${tokens === 0 ? '' : ` above ${tokens}`}: ${x} or ${y}`];
    });
  });
}

interface NamedModel {
  readonly name: string;
  readonly prices: readonly StatedPeriod[];
  readonly notes: readonly string[];
}

/** @param other the prices of the second catalogue */
function toModel(name: string, model: FirstModel, other: StatedPeriod | undefined): NamedModel | null {
  const read = readFirst(model, first.published);
  if (read === null) return null;
  const { periods, otherTimes } = read;
  const [now] = periods;
  const sources = [periods, ...otherTimes.map((one) => [one]), ...(other === undefined ? [] : [[other]])];
  const differences = other === undefined || now === undefined ? [] : describeDifferences(now, other);
  const times = otherTimes.length === 0 ? [] : ['the highest price of the day'];
  return { name, prices: highestPrices(sources), notes: [...differences, ...times] };
}

/** Names with equal prices are one entry. */
function group(models: readonly NamedModel[]): BookModel[] {
  const groups = new Map<string, NamedModel[]>();
  for (const model of models) {
    const key = JSON.stringify([model.prices, model.notes]);
    groups.set(key, [...(groups.get(key) ?? []), model]);
  }
  return [...groups.values()].map((same) => {
    const [{ prices, notes }] = same as [NamedModel, ...NamedModel[]];
    const names = same.map(({ name }) => name).toSorted();
    return { names, prices, ...(notes.length === 0 ? {} : { notes }) };
  });
}

function count(name: string, model: NamedModel, isShared: boolean, sums: Sums): void {
  if (isShared) sums.shared += 1;
  else sums.alone += 1;
  const differences = model.notes.filter((note) => note.includes(' or '));
  if (differences.length === 0) return;
  sums.differ += 1;
  sums.notes.push(`${name}: ${differences.join(', ')}`);
}

function readProvider(
  { id, api_pattern, fallback_model_providers: also = [], models }: FirstProvider,
  catalogues: { readonly first: FirstCatalogue; readonly table: Readonly<Record<string, SecondEntry>> },
  sums: Sums,
): BookProvider {
  const others = pricesOf(catalogues.table, providers[id] ?? []);
  const taken = new Map<string, NamedModel>();
  for (const model of models) {
    const own = [...new Set([model.id, ...equalsOf(model.match)])];
    const known = [...others.keys()].filter((name) => {
      const found = catalogues.first.calcPrice({ input_tokens: 1 }, name, { providerId: id });
      return found?.provider.id === id && found.model.id === model.id;
    });
    const shared = [...own, ...known].find((name) => others.has(name));
    const usual = shared === undefined ? undefined : others.get(shared);
    for (const name of new Set([...own, ...known])) {
      const read = taken.has(name) ? null : toModel(name, model, others.get(name) ?? usual);
      if (read !== null) taken.set(name, read);
    }
    const first = taken.get(model.id);
    if (first !== undefined) count(`${id}/${model.id}`, first, shared !== undefined, sums);
  }
  const fallback = also.length === 0 ? {} : { also };
  return { address: `^(?:${api_pattern})`, ...fallback, models: group([...taken.values()]) };
}

const { first: catalogue, second: table, licences } = await readCatalogues();
const sums: Sums = { shared: 0, differ: 0, alone: 0, notes: [] };
const read = Object.keys(providers).map((id) => {
  const provider = catalogue.findProvider({ providerId: id });
  if (provider === undefined) throw new Error(`${first.name} has no provider ${id}`);
  return [id, readProvider(provider, { first: catalogue, table }, sums)] as const;
});
const book: PriceBook = {
  date: first.published,
  catalogues: [first, second].map(({ name, version }) => `${name} ${version}`),
  providers: Object.fromEntries(read),
};

function place(file: string): string {
  return fileURLToPath(new URL(`../packages/wrap/src/models/money/${file}`, import.meta.url));
}
const lines = read.map(([id, { models, ...facts }]) => {
  const entries = models.map((model) => `  ${JSON.stringify(model)}`).join(',\n');
  return `${JSON.stringify(id)}: {${JSON.stringify(facts).slice(1, -1)}, "models": [\n${entries}\n]}`;
});
const { date, catalogues } = book;
const head = JSON.stringify({ date, catalogues }).slice(1, -1);
const text = `{${head}, "providers": {\n${lines.join(',\n')}\n}}\n`;
writeFileSync(place('price-book.json'), text);
writeFileSync(place('price-book.LICENSES'), licences.join('\n---\n\n'));
for (const note of sums.notes) console.log(`    ${note}`);
const names = read.reduce((sum, [, { models }]) => sum + models.flatMap((one) => one.names).length, 0);
console.log(`    ${names} names, ${Math.round(text.length / 1_000)} kB`);
console.log(
  `    ${sums.shared} models in both catalogues: ${sums.shared - sums.differ} agree, ${sums.differ} differ`,
);
console.log(`    ${sums.alone} models in the first alone`);

/**
 * The price book that is shipped: prices of models by their provider, made from public catalogues by `npm run prices`. It
 * is read when a file asks for it, and nothing is fetched.
 */
import { readFileSync } from 'node:fs';
import { editDistance } from '@capstan/core/nearest-name';
import { highestPrices } from './highest-prices.ts';
import type { StatedPeriod } from './prices.ts';

export interface BookModel {
  readonly names: readonly string[];
  readonly prices: readonly StatedPeriod[];
  /** Where the catalogues differ. */
  readonly notes?: readonly string[];
}

export interface BookProvider {
  /** A regular expression. */
  readonly address: string;
  /** Providers whose models it serves at their prices. */
  readonly also?: readonly string[];
  readonly models: readonly BookModel[];
}

export interface PriceBook {
  /** Of its older catalogue. */
  readonly date: string;
  readonly catalogues: readonly string[];
  readonly providers: Readonly<Record<string, BookProvider>>;
}

export interface PricedModel {
  /** A provider and its name of the model; null: by the address and the name of the file. */
  readonly entry: string | null;
  readonly address: string;
  readonly model: string;
}

interface BookedPrices {
  readonly prices: readonly StatedPeriod[];
  /** For a person: the date of the book and the entries. */
  readonly source: string;
}

/** A look-up without a result. The name itself may be a secret that got into the wrong place. */
interface UnknownPrices {
  readonly unknown: string;
  /** Entries of the book. */
  readonly nearest: readonly string[];
}

let known: PriceBook | undefined;

export function readPriceBook(): PriceBook {
  known ??= JSON.parse(readFileSync(new URL('./price-book.json', import.meta.url), 'utf8')) as PriceBook;
  return known;
}

interface FoundEntry {
  readonly entry: string;
  readonly prices: readonly StatedPeriod[];
}

function findOwn({ providers }: PriceBook, id: string, model: string): FoundEntry[] {
  const own = providers[id]?.models.find(({ names }) => names.includes(model));
  return own === undefined ? [] : [{ entry: `${id}/${model}`, prices: own.prices }];
}

/** A provider that serves models of others has their prices. */
function findAt(book: PriceBook, id: string, model: string): FoundEntry[] {
  const own = findOwn(book, id, model);
  const { also = [] } = book.providers[id] ?? {};
  return own.length > 0 ? own : also.flatMap((other) => findOwn(book, other, model));
}

const shownNames = 3;
const longestName = 200;

/** The names of the book that are nearest to one. */
function nearest(entries: readonly string[], asked: string): string[] {
  const name = asked.slice(0, longestName);
  const ranked = entries.map((entry) => {
    const own = entry.slice(entry.indexOf('/') + 1);
    return { entry, distance: own.includes(name) ? 0 : editDistance(name, own, name.length) };
  });
  const near = ranked.filter(({ distance }) => distance < Math.max(3, name.length / 2));
  return near
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, shownNames)
    .map(({ entry }) => entry);
}

function listEntries({ providers }: PriceBook, ids: readonly string[]): string[] {
  return ids.flatMap((id) =>
    (providers[id]?.models ?? []).flatMap(({ names }) => names.map((name) => `${id}/${name}`)),
  );
}

interface AskedEntries {
  readonly ids: readonly string[];
  readonly name: string;
  /** The provider is known. */
  readonly isPlaced: boolean;
}

function entriesOf({ providers }: PriceBook, { entry, address, model }: PricedModel): AskedEntries {
  const all = Object.keys(providers);
  if (entry !== null) {
    const [id = '', ...rest] = entry.split('/');
    const isPlaced = all.includes(id);
    return { ids: isPlaced ? [id] : all, name: isPlaced ? rest.join('/') : entry, isPlaced };
  }
  const serving = all.filter((id) => new RegExp(providers[id]?.address ?? '', 'i').test(address));
  const isPlaced = serving.length > 0;
  return { ids: isPlaced ? serving : all, name: model, isPlaced };
}

/** Prices by an entry, by the provider at an address, or, at another address, the highest of all that have the name. */
export function lookUp(book: PriceBook, asked: PricedModel): BookedPrices | UnknownPrices {
  const { ids, name, isPlaced } = entriesOf(book, asked);
  const found = asked.entry !== null && !isPlaced ? [] : ids.flatMap((id) => findAt(book, id, name));
  if (found.length === 0) {
    const at = isPlaced ? ` of ${ids.join(', ')}` : '';
    const unknown = `the price book of ${book.date} has no such model${at}`;
    return { unknown, nearest: nearest(listEntries(book, ids), name) };
  }
  const entries = [...new Set(found.map(({ entry }) => entry))];
  const shown = entries.slice(0, shownNames).join(', ');
  const which =
    entries.length === 1 ? shown : `the highest of ${shown}${entries.length > shownNames ? ' …' : ''}`;
  return {
    prices: highestPrices(found.map(({ prices }) => prices)),
    source: `book of ${book.date}: ${which}`,
  };
}

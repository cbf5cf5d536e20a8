/** The prices of a model: as its file states them, or of the price book. A price that neither has is unknown, and never 0. */
import { z } from 'zod';
import type { WrapHost } from '../../wrap-kind.ts';
import { lookUp, readPriceBook } from './price-book.ts';
import {
  type CacheRules,
  type Prices,
  type StatedPeriod,
  StatedPrices,
  StatedTextPrices,
  toPrices,
} from './prices.ts';

const Book = z.literal('book');
const BookEntry = z.strictObject({
  /** A provider of the book and its name of the model. */
  book: z.string().regex(/^[^/]+\/./, { error: 'expected PROVIDER/MODEL, such as openai/gpt-5' }),
});

export const ChatPrices = z.union([...StatedPrices.options, Book, BookEntry]);
export const TextPrices = z.union([...StatedTextPrices.options, Book, BookEntry]);

type WrittenPrices = 'book' | { readonly book: string } | StatedPeriod | readonly StatedPeriod[];

/** A part of a file as far as its prices follow from it. */
export interface PricedPart {
  readonly prices?: WrittenPrices | undefined;
  readonly base_url: string;
  readonly model: string;
}

export interface FilePrices {
  readonly prices: Prices | undefined;
  /** Where they are from, for a person. */
  readonly source: string;
  readonly cache: CacheRules;
}

interface PricesHost {
  readonly host: WrapHost;
  /** The name of the part in the file. */
  readonly kind: string;
  readonly cache: CacheRules;
  /** Texts, which have no answer that costs anything. */
  readonly isOfTexts?: boolean;
}

/** Its suggestion holds nothing of the file. */
export const unknownPrice = 'price_unknown';

const byHand =
  'set prices by hand in USD per million tokens, such as prices: {input: 3, output: 15}, or name an entry of the book, such as prices: {book: openai/gpt-5}';

function readBook(
  entry: string | null,
  { base_url: address, model }: PricedPart,
  { host, kind, cache, isOfTexts = false }: PricesHost,
): FilePrices {
  const found = lookUp(readPriceBook(), { entry, address, model });
  const refuse = (message: string, nearest: readonly string[] = []): FilePrices => {
    const pointer = `/${kind}/${entry === null ? 'model' : 'prices'}`;
    const names = nearest.length === 0 ? '' : `the nearest are ${nearest.join(', ')}; `;
    host.compile.refuse({ code: unknownPrice, pointer, message, suggestion: names + byHand });
    return { prices: undefined, source: '', cache };
  };
  if ('unknown' in found) return refuse(found.unknown, found.nearest);
  const { prices, source } = found;
  if (!isOfTexts && prices.some(({ output }) => output === undefined)) {
    return refuse('the entry of the price book has no price of answers');
  }
  return { prices: toPrices(prices, cache), source, cache };
}

/** Prices of the file go before the book that the environment names. */
export function readFilePrices(part: PricedPart, host: PricesHost): FilePrices {
  const { cache } = host;
  const stated = part.prices ?? (host.host.usesPriceBook ? 'book' : undefined);
  if (stated === undefined) return { prices: undefined, source: '', cache };
  if (stated === 'book') return readBook(null, part, host);
  if ('book' in stated) return readBook(stated.book, part, host);
  return { prices: toPrices(stated, cache), source: 'by hand', cache };
}

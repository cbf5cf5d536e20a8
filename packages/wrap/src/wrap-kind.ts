/**
 * What the kinds of wrapped capabilities have in common: the shapes of their parts, and the port through which they see
 * a call. A kind is one file: the shape of its part in the YAML, and a function that performs one call.
 */

import type { ExecContext } from '@capstan/capability';
import type { Schema } from '@capstan/capability/schema';
import type { Json } from '@capstan/core/contracts/primitives';
import type { WrapScope } from '@capstan/core/expression/evaluation';
import { z } from 'zod';
import type { Origin } from './exchange/download.ts';
import { canBeHeader, type Evaluate, type WrapCompiler } from './templates.ts';

// Shapes of fields. Strings of `env`, `headers`, `token` and every key that ends in `url` may hold `${NAME}`.

/** An http or https address whose host is written out; expressions may follow the host. */
export const Address = z.string().regex(/^https?:\/\/[^/?#{}@\s]+([/?#]|$)/, {
  error:
    'an address begins with http:// or https:// and a host that is written out, without user and password',
});

/** `Address`, or one expression that reads an address out of an answer. */
export const AddressOrExpression = z.union([Address, z.string().regex(/^\s*\{\{[\s\S]*\}\}\s*$/)], {
  error: 'an address, or one {{ expression }} that yields an address',
});

export const BaseAddress = Address.refine((url) => !/[?#{]/.test(url), {
  error: 'a base address has no query, fragment or expression',
});

/** A base address whose query, such as a version of the interface, goes with each request. */
export const ServiceAddress = Address.refine((url) => !/[#{]/.test(url), {
  error: 'the address of a service has no fragment or expression',
});

export const Secret = z
  .string()
  .min(1)
  .refine(canBeHeader, { error: 'the value of the variable cannot be sent in a header' });
export const Headers = z.record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string());

/** Headers that are the same in each call. */
export const FixedHeaders = z.record(
  Headers.keyType,
  z.string().refine((text) => !text.includes('{{'), { error: 'no expression is evaluated in this header' }),
);

/** Forms in which a downloaded file appears in expressions. */
export const FileForm = z.enum(['path', 'data_uri', 'base64', 'text']);
export type FileForm = z.infer<typeof FileForm>;

/** One call of a wrapped capability, as its kind sees it. */
export interface WrappedCall {
  readonly scope: WrapScope;
  /** Its signal also aborts when the timeout of the file is over. */
  readonly context: ExecContext;
  /** Local copies of the downloaded files, by the names that the file gives them. */
  readonly paths: Readonly<Record<string, string>>;
  /** The most that a file of an answer may have. */
  readonly maxFileBytes: number;
  /** Makes a local file known to `files.upload`. @returns the text that `from` accepts */
  keep(path: string, contentType: string): string;
}

export interface WrapHost {
  /** The name of the capability. */
  readonly name: string;
  /** The folder of the YAML file. */
  readonly folder: string;
  readonly compile: WrapCompiler;
  /** Of the capability; programs get PATH and HOME from it. */
  readonly environment: NodeJS.ProcessEnv;
  /** Keeps the jobs of providers by their Idempotency-Keys. */
  readonly stateDir: string;
  /** Takes secrets out of a text. */
  readonly hide: (text: string) => string;
  /** The price that the file states. */
  readonly cost: { readonly rate_usd: number };
  /** A model without prices has those of the price book. */
  readonly usesPriceBook: boolean;
}

/** How the cost of a call grows while it runs, as expressions of USD. */
export interface WrapGrowth {
  /** The most that it costs before the first token of its answer. */
  readonly start: string;
  /** The most that each token adds. */
  readonly perToken: string;
}

/** What a kind knows of the price of a call. */
export interface WrapPrice {
  /** The most that a call costs by its input, USD, as an expression. */
  readonly worstCase: string;
  /** Of a call whose answer comes in parts, as expressions. Default: its answer comes as a whole. */
  readonly growth?: WrapGrowth;
  /** Where the prices are from, for a person. */
  readonly source: string;
  /** USD of a call that began at a time, Unix ms; null: the answer does not report what it used. */
  costOf(answer: Json, at: number): number | null;
}

/** Defaults for fields that the file leaves out. */
export interface WrapDefaults {
  readonly input?: Schema;
  readonly output?: Schema;
  readonly result?: Json;
  readonly timeout?: string;
  /** Files of `files.upload` that the file does not list. */
  readonly uploads?: Readonly<Record<string, { readonly from: string; readonly to: string }>>;
}

export interface PreparedKind {
  readonly defaults: WrapDefaults;
  /** The form of a downloaded file without `as`. */
  readonly fileForm: FileForm;
  /** The kind itself fills the files that `files.upload` names: their `from` is not needed. */
  readonly writesFiles: boolean;
  /** A program that must be on this machine. */
  readonly program?: string;
  /** Of a call: requests with these headers go to this origin only. */
  readonly originOf?: Evaluate<Origin>;
  /** Of clients, which it speaks itself where the file changes neither its input nor its output. Default: none. */
  readonly protocols?: readonly string[];
  /** In place of what the file measures. */
  readonly price?: WrapPrice;
  /** @returns the answer, which expressions read @throws CallFailure */
  perform(call: WrappedCall): Promise<Json>;
}

/** A kind whose part has been checked when `prepare` is called. */
export interface WrapKind {
  readonly shape: z.ZodType;
  prepare(part: unknown, host: WrapHost): PreparedKind;
}

export function defineKind<Shape extends z.ZodType>(kind: {
  readonly shape: Shape;
  prepare(part: z.output<Shape>, host: WrapHost): PreparedKind;
}): WrapKind {
  // `shape` has parsed the part.
  return { shape: kind.shape, prepare: (part, host) => kind.prepare(part as z.output<Shape>, host) };
}

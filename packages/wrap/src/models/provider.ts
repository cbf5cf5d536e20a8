/** A provider of models at its base address: how each request to it is made. */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { parseDuration } from '@capstan/core/duration';
import type { Origin } from '../exchange/download.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { WrapHost } from '../wrap-kind.ts';
import type { ProviderPart } from './model-part.ts';

export interface Provider {
  readonly origin: Origin;
  /** Takes secrets out of a text. */
  readonly hide: (text: string) => string;
  /** One request below the base address. */
  send(path: string, request: Pick<Exchange, 'body' | 'form' | 'signal' | 'usageOf'>): Exchange;
}

interface ProviderHost {
  readonly host: WrapHost;
  /** The name of the part in the file. */
  readonly kind: string;
  /** Of the protocol; those of the file replace them. */
  readonly headers: Readonly<Record<string, string>>;
}

function asksForStream({ settings = {} }: { readonly settings?: JsonObject }): boolean {
  return settings.stream === undefined || settings.stream === true;
}

/** A provider that answers whole is silent until then, so only the timeout of the call limits it. */
export function createProvider(part: ProviderPart, { host, kind, headers: own }: ProviderHost): Provider {
  const { compile, hide } = host;
  const at = compile.base(part.base_url, `/${kind}/base_url`);
  const given = Object.entries(part.headers).map(([name, value]) => [name.toLowerCase(), value]);
  const headers: Record<string, string> = { ...own, ...Object.fromEntries(given) };
  const idleMs =
    part.idle_timeout !== undefined && asksForStream(part) ? parseDuration(part.idle_timeout) : undefined;
  return {
    origin: { url: part.base_url, headers },
    hide,
    send: (path, request) => ({ method: 'POST', target: at(path), headers, hide, idleMs, ...request }),
  };
}
